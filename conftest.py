"""Rules for every test are in the plugin of the testkit."""

import pytest

pytest.register_assert_rewrite("forbear_testkit")
pytest_plugins = ["forbear_testkit.plugin"]

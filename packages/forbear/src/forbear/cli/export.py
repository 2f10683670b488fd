"""`forbear export`: print a policy as text for another system, and on stderr what the text cannot express."""

from typing import Unpack

import click

from forbear import export
from forbear.answers.profile import ProfileChoice
from forbear.cli.kit.completion import complete_target
from forbear.cli.kit.options import POLICY_OPTIONS, GroupedCommand, PolicyOptions, apply_options
from forbear.cli.kit.output import EXIT_CODES, BadInput, tell
from forbear.cli.kit.profiles import DEFAULT_PROFILE, profile_option, retry_not_found_option


class ExportCommand(GroupedCommand):
    """A command whose help lists the targets."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the targets with their descriptions, then the exit codes."""
        with formatter.section("Targets"):
            formatter.write_dl(list(export.TARGETS.items()))
        super().format_epilog(ctx, formatter)


@click.command(cls=ExportCommand, params=[*POLICY_OPTIONS], epilog=EXIT_CODES)
@click.argument("target", shell_complete=complete_target)
@profile_option(DEFAULT_PROFILE, "The policy, as in `forbear schedule`.")
@click.option(
    "--repeatable",
    is_flag=True,
    help="Assume operations that are safe to execute twice, where the target cannot see them.",
)
@retry_not_found_option
def command(
    target: str, profile: str, repeatable: bool, retry_not_found: bool, **options: Unpack[PolicyOptions]
) -> None:
    """Write a policy as configuration or code for another system.

    `--profile` is `default` (the policy of forbear.retry), a service such as `cloud_storage` (the recommended policy),
    or a name such as `cloud_storage.documented` (the service's own documentation). It may also be a preset:
    `interactive`, `mobile`, `ci` or `batch`. A wrong name prints the list. The options change the policy.

    What the target cannot express is listed on stderr, one line each; nothing is dropped silently.
    """
    if target not in export.TARGETS:
        raise BadInput(f"no such target: {target}", f"the targets are {', '.join(export.TARGETS)}")
    policy = ProfileChoice(profile, retry_not_found).policy()
    limits, backoff = apply_options(policy.limits, policy.backoff, options)
    policy = policy.with_limits(limits).with_backoff(backoff)
    try:
        written = export.source(target, policy.with_repeatable(True) if repeatable else policy)
    except (TypeError, ValueError) as error:
        rule = str(error).partition("; ")[0]  # what follows is a cure for callers of the library
        raise BadInput(rule.replace("`policy`", "`--profile`"), "name another profile or another target") from None
    click.echo(written.value.rstrip("\n"))
    for loss in written.losses:
        tell(f"not the same: {loss}")

"""`forbear export`: a policy as text for another system on stdout, and on stderr what that text cannot say."""

from typing import Unpack

import click

from forbear import export
from forbear.cli import profiles
from forbear.cli.options import Chosen, laid_over, policy_options
from forbear.cli.output import EXIT_CODES, BadInput, tell


class Export(click.Command):
    """Lists the targets in its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The targets, then the exit codes."""
        with formatter.section("Targets"):
            formatter.write_dl(list(export.TARGETS.items()))
        super().format_epilog(ctx, formatter)


@click.command(cls=Export, epilog=EXIT_CODES)
@click.argument("target")
@click.option("--profile", default=profiles.DEFAULT, show_default=True, help="The policy, as in `forbear schedule`.")
@click.option(
    "--repeatable", is_flag=True, help="Write it for what may be executed twice, where nobody sees what it is."
)
@policy_options
def command(target: str, profile: str, repeatable: bool, **chosen: Unpack[Chosen]) -> None:
    """Write a policy in the words of another system.

    PROFILE is `default` (what forbear.retry has), a service such as `cloud_storage` (as we recommend), or one such as
    `cloud_storage.documented` (as its own page says); a wrong one gets a list. The options change it.

    What the target cannot say is listed on stderr, one line each: none of it is dropped in silence.
    """
    if target not in export.TARGETS:
        raise BadInput(f"no such target: {target}", f"the targets are {', '.join(export.TARGETS)}")
    policy = profiles.policy(profile)
    limits, backoff = laid_over(policy.limits, policy.backoff, chosen)
    policy = policy.with_limits(limits).with_backoff(backoff)
    try:
        written = export.source(target, policy.with_repeatable(True) if repeatable else policy)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None
    click.echo(written.value.rstrip("\n"))
    for loss in written.losses:
        tell(f"not the same: {loss}")

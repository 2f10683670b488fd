"""Export a policy to Ruby: the client of Cloud Storage, and those of IAM, Memorystore and Resource Manager (gapic)."""

from forbear.export.outline import Exported, Outline, outline_storage
from forbear.export.rpcs import as_snake, code_names, longest_call, outline_clients
from forbear.export.waits import mean_of_draws
from forbear.policy import Policy
from forbear.text.duration import show

_SOURCE = "retriable, exponential_backoff.rb: `[base_interval * multiplier**iteration, max_interval].min`"
_JITTER = "retriable, exponential_backoff.rb: `delta = rand_factor * interval * 1.0`"
_SHARE = 1.5  # of a step: its longest wait
_NO_TIMEOUT = 86_400 * 365  # seconds
_GAX_SOURCE = "gapic-common, retry_policy.rb: `[delay + Kernel.rand(0.0..jitter), max_delay].min`"
_GAX_TIMEOUT = "gapic-common, rpc_call.rb: `deadline = calculate_deadline options`, once for all attempts"
_GAX_SHARE = 0.1  # of the first wait, which is added to each where the policy has another jitter


def ruby(policy: Policy) -> Exported[str]:
    """Return Ruby that makes a client called `storage` (google-cloud-storage). Example: see `source`."""
    outline = outline_storage(policy)
    waits = outline.mean_waits.cap(outline.waits.longest / _SHARE)
    retries = outline.count_retries()
    if outline.attempts is None and outline.timeout is not None:
        retries *= 2  # the timeout is the limit, but the client makes a list of this many waits
    outline.says("timeout")
    outline.waits_become(waits.steps(outline.shown_waits), _SOURCE)
    outline.differs("jitter", f"from half to one and a half of the mean wait instead ({_JITTER})")
    outline.differs("errors", "the client's own list")
    outline.knows_idempotent_calls()
    arguments = {
        "retries": retries,
        "max_elapsed_time": _NO_TIMEOUT if outline.timeout is None else f"{outline.timeout:g}",
        "base_interval": f"{waits.initial:g}",
        "max_interval": f"{waits.maximum:.6g}",
        "multiplier": f"{waits.multiplier:g}",
    }
    if outline.attempt_timeout is not None:
        arguments["timeout"] = f"{outline.attempt_timeout:g}"
        outline.says("attempt_timeout")
    return outline.text(
        'require "google/cloud/storage"',
        "",
        "storage = Google::Cloud::Storage.new(",
        ",\n".join(f"  {name}: {value}" for name, value in arguments.items()),
        ")",
    )


def gax_ruby(policy: Policy) -> Exported[str]:
    """Return Ruby that configures gRPC clients of IAM, Memorystore or Resource Manager. Example: see `source`."""
    outline, clients = outline_clients(policy, "ruby")
    jitter = _choose_jitter(outline)
    waits = outline.waits if outline.waits.jitter == "documented" else outline.mean_waits
    maximum = outline.waits.longest
    steps = waits.steps(outline.shown_waits)
    outline.waits_become([mean_of_draws(step, jitter, maximum) for step in steps], _GAX_SOURCE)
    timeout = longest_call(outline)
    outline.says("timeout")
    outline.differs("attempts", f"{show(timeout)} in time instead ({_GAX_TIMEOUT})")
    outline.warns("jitter's version", "gapic-common before 1.3 ignores `jitter:`, and waits for the step itself")
    outline.warns("REST", "the clients over REST have a configuration of their own, which this text leaves as it is")
    names = ", ".join(f'"{name}"' for name in code_names(outline))
    lines = [
        "retry_policy = {",
        f"  initial_delay: {waits.initial:g},",
        f"  multiplier: {waits.multiplier:g},",
        f"  max_delay: {maximum:g},",
        f"  jitter: {jitter:g},",
        f"  retry_codes: [{names}]",
        "}",
    ]
    for client in clients:
        lines += ["", f"{client.home}::{client.name}::Client.configure do |config|", "  ["]
        lines += [f"    config.rpcs.{as_snake(method)}," for method in client.methods]
        lines += ["  ].each do |rpc|", "    rpc.retry_policy = retry_policy", f"    rpc.timeout = {timeout:g}", "  end"]
        lines += ["end"]
    paths = ("/".join(map(as_snake, module.split("::"))) for module in sorted({client.home for client in clients}))
    return outline.text(*(f'require "{path}"' for path in paths), "", *lines)


def _choose_jitter(outline: Outline) -> float:
    """Return the seconds of jitter, and record what the policy's jitter becomes."""
    if outline.waits.jitter == "documented":
        outline.says("jitter")
        return outline.waits.spread
    jitter = 0.0 if outline.waits.jitter == "none" else round(outline.mean_waits.initial * _GAX_SHARE, 3)
    outline.differs("jitter", f"up to {show(jitter)} more for each wait, none at the longest ({_GAX_SOURCE})")
    return jitter

"""Command lines that use every option of every command once, in an order in which each finds what it needs."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Line:
    """One command line, and how it ends."""

    words: str
    """After `muster`; names in braces stand for what is known when it is run."""
    code: int = 0
    keeps: str = ""
    """The name for the first word that it prints."""


REFUSED, UNKNOWN, UNREACHED, USAGE, FAILED = 5, 4, 3, 2, 1
NOBODY = "--jump ops@127.0.0.1:1 --key {dir}/key --accept-host-key SHA256:AAAA"
"""How a machine is reached that is not there."""

AGAINST_A_FLEET: Sequence[Line] = (
    # jobs
    Line("--coordinator {address} whoami -o wide"),
    Line("logins -o json"),
    Line("projects add vision"),
    Line(
        "run -N 1 --gpus 1 --gpu-model T4 --cpus 0.1 --memory 16Mi --name opts --env A=1 -p http=31995 --workdir /tmp "
        "--project vision --label paper=icml --priority 1 --placement pack --max-per-node 1 --success all "
        "--check-in-timeout 1m --lost-after 2m --on-disconnect keep --network host -- true"
    ),
    Line("run -d --code {dir}/code -- true", UNREACHED),
    Line("run --dry-run --queue-anyway --git https://git.example.org/train.git@main -- true"),
    Line(
        "run --dry-run --queue-anyway --git https://git.example.org/train.git --ref main --git-path trainer "
        "--git-secret none --git-submodules --git-lfs -- true",
        USAGE,
    ),
    Line("submit --dry-run {dir}/job.yaml --git https://git.example.org/train.git"),
    Line("run -d --queue-anyway --input words=https://example.org/words.txt -- true"),
    Line("run -d --env-file {dir}/vars.env --file {dir}/job.yaml --set timeouts.grace=1s -o json -- sleep 0"),
    Line(
        "run -d --time-limit 1m --grace 1s --restarts 1 --infrastructure-restarts 2 --backoff 1s -- true", keeps="job"
    ),
    Line("secrets set wandb key=@{dir}/secret --kind generic --project vision --replace -o json"),
    Line("secrets list --project vision -o wide"),
    Line("projects allow vision --capability SYS_PTRACE --host-path /tmp --pids 100 --any-user"),
    Line(
        "run --dry-run --queue-anyway --image python:3 --pull never --shm 1Gi --user 1:1 --secret KEY=wandb:key "
        "--project vision --entrypoint sh --ulimit nofile=1024 --node-label rack=7 -- true"
    ),
    Line(
        "run --dry-run --queue-anyway --framework pytorch --dialect slurm --image python:3 --mount /tmp:/data "
        "--mig 1g.10gb --project vision -- true"
    ),
    Line("run --dry-run --queue-anyway --gpu-portion 0.5 --gpus 2 -- true"),
    Line("run --dry-run --queue-anyway --gpu-memory 20Gi -- true"),
    Line("projects allow vision --nothing --privileged --gain-privileges"),
    Line("projects allow vision --attach members --no-commands --no-connections --no-files"),
    Line("projects allow vision --attach owner --commands --connections --files"),
    Line("run --dry-run --class spare --stdin -- cat"),
    Line("run --dry-run --tty -- bash"),
    Line("submit {dir}/job.yaml --set workers=1 --queue-anyway -o yaml --follow"),
    Line("submit --dry-run {dir}/job.yaml"),
    Line("jobs -a --phase succeeded --name opt --mine --user admin --project vision --label paper=icml -o wide"),
    Line("jobs --since 1h --sort ran -n 5 -q"),
    Line("wait {job} --timeout 1m -o json"),
    Line("wait --all --name opt --phase running --mine --project vision --label paper=icml"),
    Line("show {job} --attempt 1 -o wide"),
    Line("why {job} -o yaml"),
    Line("events {job} --follow -o json"),
    Line("events --node {node} -o json"),
    Line("events --fleet"),
    Line("events --all -o json"),
    Line("logs {job} -f --rank 0 --since 1h --tail 5 --attempt 1 -t --no-prefix --raw"),
    Line("logs {job} -o json"),
    Line("metrics {job} -k loss --rank 0 --attempt 1 --most 5 -o csv"),
    Line("top {job} --follow -o json"),
    Line("top --node {node} --once -o yaml"),
    Line("metrics {job} -f --plot --smooth 0.5 --log-scale"),
    Line("exec {job} --rank 0 --no-tty --no-stdin -e A=b -w /tmp --wait -- true", REFUSED),
    Line("exec {job} --rank 0 --tty --stdin -- true", REFUSED),
    Line("exec {job} --all --at-once 2 -o json -- true"),
    Line("shell {job} --rank 0 --keep work --wait", USAGE),
    Line("shell {job} --rank 0 --list -o json"),
    Line("shell {job} --rank 0 --end work", REFUSED),
    Line("attach {job} --rank 0 --wait"),
    Line("attach {job} --rank 0 --shell work", USAGE),
    Line("forward {job} 0:8888 --rank 0 --open --wait", REFUSED),
    Line("attachments {job} -o json"),
    Line("ssh-config add --file {dir}/ssh-config --yes -o json"),
    Line("ssh {job} --rank 0 --vscode", REFUSED),
    Line("ssh-config remove --file {dir}/ssh-config -o json"),
    Line("attachments --end 4f2a91c07be3", UNKNOWN),
    Line("cp {dir}/job.yaml {job}: --rank 0 --no-times -o json", REFUSED),
    Line("cp {job}:out {dir} --all --times", REFUSED),
    Line("sync {dir} {job}:out --rank 0 --delete --exclude *.pt --down --overwrite -o json", REFUSED),
    Line("sync {dir} {job}:out --all", REFUSED),
    Line("hold --all --name none --phase queued --mine --project vision --label a=b -y -o json"),
    Line("unhold --all --name none --mine --project vision --label a=b -y -o json"),
    Line("suspend --all --name none --phase running --mine --project vision --label a=b -y -o json"),
    Line("resume --all --name none --mine --project vision --label a=b -y -o json"),
    Line(
        "change --all --name none --phase queued --mine --project vision --label a=b -y --priority 1 "
        "--class spare --pool h100 --limit 3h --queue-limit 1d --expected 1h --not-before 2h -o json"
    ),
    Line("stop --all --name none --phase queued --mine --project vision --label a=b --now -y"),
    Line("delete --all --name none --phase failed --mine --project vision --label a=b --force --yes"),
    Line("outputs list {job} --rank 0 --attempt 1 -o csv"),
    Line("outputs get {job} model.pt --to {dir}/results --rank 0 --attempt 1", UNKNOWN),
    Line("outputs retry {job} --rank 0 --attempt 1 -o json", REFUSED),
    Line("checkpoints list {job} -o json"),
    Line("checkpoints get {job} s --to {dir}/saved --rank 0 --attempt 1 -o json", UNKNOWN),
    Line("checkpoints pin {job} s --attempt 1 -o json", UNKNOWN),
    Line("checkpoints unpin {job} s --attempt 1 -o json", UNKNOWN),
    Line("checkpoints remove {job} s --attempt 1 -o json", UNKNOWN),
    Line("images -o json"),
    Line("images list {node} -o json"),
    Line("images clear {node} --yes -o json"),
    Line("images clear {node} team/none:1 --yes", REFUSED),
    Line("images pull team/none:1 --node {node} --pool h100 --project vision -o json", UNKNOWN),
    Line("volumes -o json"),
    Line("volumes list --node {node} --project vision -o json"),
    Line("volumes remove {node} vision models --yes -o json", UNKNOWN),
    Line("delete {job}"),
    # data
    Line("upload {dir}/code --project vision -o json", UNREACHED),
    # nodes
    Line("nodes --state ready --not-cordoned --pool h100 --label rack=7 -q -o wide"),
    Line("nodes show {node} -o json"),
    Line("nodes label {node} rack=7 pool-"),
    Line("nodes taint {node} gpu=bad:NoExecute team- --after 1h -o json"),
    Line("nodes cordon {node} --reason fan -o yaml"),
    Line("nodes uncordon {node} -o json"),
    Line("nodes drain {node} --restart --reason fan --timeout 30s -o json"),
    Line("nodes drain {node} --no-wait"),
    Line(
        "windows add disks --node {node} --label rack=7 --project vision --reason fans --from 2h --to 8h --notice 1h "
        "-o json"
    ),
    Line("windows -o json"),
    Line("windows remove disks -o json"),
    Line("pools set h100 --label rack=7 --longest-run 3d --level zone --level rack --enforce stop --anyway -o json"),
    Line("pools -o json"),
    Line("pools show h100 -o json"),
    Line("pools remove h100 -o json"),
    Line("nodes joined -o wide"),
    Line("nodes token create --ttl 1h --uses 2 --pool h100 --label rack=7"),
    Line("nodes token list -o json"),
    Line("nodes token revoke {join_token}"),
    Line(
        "nodes check 127.0.0.1:1 -f {dir}/machines.yaml --user ops --reach 127.0.0.1:1 --parallel 1 -o json " + NOBODY,
        FAILED,
    ),
    Line("nodes check --local", FAILED),
    Line(
        "nodes add 127.0.0.1:1 --bundle {dir}/small.tar --signer {dir}/release.key.pub --pool a --label rack=7 "
        "--name n --address 127.0.0.1 --ports 20000-20010 --setting processes=true --reach 127.0.0.1:1 -y --dry-run "
        "--parallel 1 -o json " + NOBODY,
        FAILED,
    ),
    Line("nodes add -f {dir}/machines.yaml --reach 127.0.0.1:1 --bundle {dir}/small.tar --dry-run", FAILED),
    Line(
        "nodes upgrade {node} -f {dir}/machines.yaml --user ops --bundle {dir}/small.tar --signer "
        "{dir}/release.key.pub -y --dry-run --parallel 1 -o json " + NOBODY,
        FAILED,
    ),
    Line("nodes upgrade --all --bundle {dir}/small.tar --dry-run --key {dir}/key", FAILED),
    Line("nodes remove {node} -y --ssh ops@127.0.0.1:1 --purge --force -o json " + NOBODY, UNREACHED),
    # who may do what
    Line("users add ada --access member --project vision"),
    Line("users list -o wide"),
    Line("accounts add ci --access viewer --project vision --console"),
    Line("accounts list -o json"),
    Line("projects grant vision ci --access member"),
    Line("projects list -o wide"),
    Line("projects storage -o json", UNREACHED),
    Line("projects storage vision --limit 200Gi"),
    Line("projects policy vision --file {dir}/policy.yaml"),
    Line("projects policy vision --effective -o json"),
    Line("projects policy vision --remove"),
    Line("presets put environment pytorch-2.9 --file {dir}/preset.yaml --title PyTorch --project vision"),
    Line("presets put environment pytorch-2.9 -f {dir}/preset.yaml --note again --project vision -o json"),
    Line("presets list --project vision -o json"),
    Line("presets show environment pytorch-2.9@1 --project vision -o json"),
    Line("presets history environment pytorch-2.9 --project vision -o yaml"),
    Line("presets remove environment pytorch-2.9 --project vision"),
    Line("projects show vision -o json"),
    Line("projects revoke vision ci"),
    Line("departments add research"),
    Line("quota apply {dir}/quotas.yaml --dry-run"),
    Line("quota apply {dir}/quotas.yaml --yes -o json"),
    Line("quota set vision --pool default gpus=1 limit=2 weight=3"),
    Line("quota show vision --pool default"),
    Line("quota show --terms -o json"),
    Line("departments list -o wide"),
    Line("usage --by job --since 7d --until 1s --project vision --pool default -o csv"),
    Line("queue --pool default --project vision -o json"),
    Line("tokens create --for ada --ttl 1h --note test --access viewer --project vision"),
    Line("tokens list -o wide"),
    Line("tokens revoke {token}"),
    Line("tokens prune --unused 1d --yes"),
    Line("users remove ada"),
    Line("accounts remove ci"),
    Line("secrets remove wandb --project vision"),
    Line(
        "notify add pager --webhook https://pager.example.com/x --key-file {dir}/key.txt --event muster.job.* "
        "--minimum warning --job train-* --mine --owner ada --label paper=icml --project vision --replace -o json"
    ),
    Line("notify add chat --slack-file {dir}/chat.txt --project vision"),
    Line("notify add me --mail ada@example.com --project vision"),
    Line("notify list --project vision -o wide"),
    Line("notify log pager --project vision -o json"),
    Line("notify test pager --project vision -o json", REFUSED),
    Line("notify remove pager --project vision"),
    Line("notify remove chat --project vision"),
    Line("notify remove me --project vision"),
    Line("projects add sound"),
    Line("projects remove sound --yes -o json"),
    Line("audit --since 1h --until 1s --user admin -n 5 --oldest -o wide"),
    Line("audit --page nonsense", USAGE),
    Line("audit verify"),
    Line("audit verify --expect 1:00", FAILED),
    Line("authority show -o json"),
    Line("authority rotate -o json"),
    Line("authority finish --force -o json"),
    # bundles
    Line("bundles keygen {dir}/release.key"),
    Line("bundles sign {dir}/small.tar --sign-key {dir}/release.key"),
    Line("bundles verify {dir}/small.tar --signer {dir}/release.key.pub"),
    Line("bundles show {dir}/small.tar -o json"),
    Line("bundles upload {dir}/small.tar --name stable.tar --signer {dir}/release.key.pub"),
    Line("bundles list -o wide"),
    Line("bundles get stable.tar --to {dir} --signer {dir}/release.key.pub"),
    Line("bundles sbom {dir}/small.tar -o {dir}/small.json", FAILED),
    Line("bundles remove stable.tar"),
    Line(
        "bundles create --python 3.11 --arch x86_64 --no-frozen --output {dir}/made.tar --find-links {dir}/none "
        "--wheel {dir}/none.whl --sign-key {dir}/release.key",
        FAILED,
    ),
    # oneself
    Line("open --print", UNKNOWN),
    Line("open -o json", UNKNOWN),
    Line("login {address} --sso", REFUSED),
    Line("login {address} --authority sha256:{authority} --token-file {dir}/token -o json"),
    Line("logout"),
    Line("login {address} --token-file {dir}/token"),
    Line("logout --revoke"),
    Line("schema"),
    Line("version"),
    Line("-V"),
    Line("help nodes drain"),
)


def used(line: str, tree: Any) -> Iterator[tuple[str, str]]:
    """The options that a line uses, each with its command; `tree` is the program as Click has it."""
    path, command = ["muster"], tree
    for word in shlex.split(line):
        if word == "--":
            return
        inner = getattr(command, "commands", {}).get(word)
        if inner is not None:
            path, command = [*path, word], inner
        elif word.startswith("-"):
            yield " ".join(path), _primary(command, word)


def documented(tree: Any) -> Iterator[tuple[str, str]]:
    """Every option of every command."""
    yield from _documented(tree, ("muster",))


def _documented(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for option in command.params:
        if option.param_type_name == "option" and "completion" not in option.opts[0]:
            yield " ".join(path), option.opts[0]
    inner: Mapping[str, Any] = getattr(command, "commands", {})
    for name, each in inner.items():
        yield from _documented(each, (*path, name))


def _primary(command: Any, word: str) -> str:
    """An option by its first name."""
    for option in command.params:
        if word in {*option.opts, *option.secondary_opts}:
            return str(option.opts[0])
    return word

#!/bin/bash
# An array of 8 trials on a real one-node cluster of Slurm, from Debian's packages slurmctld, slurmd, slurm-client and munge.
# One task is stopped by USR1, one is requeued by scontrol, one is killed and requeued; all results are compared with those of
# a single-machine sweep. Everything runs in a temporary folder, as the caller. With LIMIT=1 a trial that is longer than its
# time limit follows; EPOCHS (60000) must take longer than a minute. Usage: [LIMIT=1] slurm.sh TESSERA
set -u
tessera=$(realpath "$1")
for program in munged slurmctld slurmd sbatch; do
	PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || { echo "left out: $program is missing (apt-get install slurmctld slurmd slurm-client munge)"; exit 0; }
done
PATH=$PATH:/usr/sbin
root=$(mktemp -d)
chmod 755 "$root" # slurmd refuses folders that others may write to
node=$(hostname -s)
export SLURM_CONF=$root/slurm.conf
cd "$root" || exit 1
mkdir -p munge state spool log work

pids=()
stop() {
	scancel --user="$(id -un)" --quiet 2>/dev/null
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
	[ "${KEEP:-}" ] || rm -rf "$root"
}
trap stop EXIT
fail() {
	echo "failed: $*"
	tail -n 20 "$root"/log/*.log "$root"/work/array/logs/* 2>/dev/null
	exit 1
}
# until_ SECONDS WHAT COMMAND...: waits until a command succeeds.
until_() {
	local left=$1 what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ $((left--)) -gt 0 ] || fail "$what"
		sleep 1
	done
}

dd if=/dev/urandom of=munge/key bs=1024 count=1 2>/dev/null
chmod 700 munge && chmod 400 munge/key
munged --foreground --force --key-file=munge/key --socket="$root/munge/socket" --pid-file="$root/munge/pid" \
	--seed-file="$root/munge/seed" --log-file="$root/log/munged.log" 2>>log/munged.log &
pids+=($!)
until_ 20 "munged does not answer" test -S munge/socket

cat >slurm.conf <<CONF
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$root/munge/socket
StateSaveLocation=$root/state
SlurmdSpoolDir=$root/spool
SlurmctldPidFile=$root/slurmctld.pid
SlurmdPidFile=$root/slurmd.pid
SlurmctldLogFile=$root/log/slurmctld.log
SlurmdLogFile=$root/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc)
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
slurmctld -D -i >>log/start.log 2>&1 &
pids+=($!)
slurmd -D -N "$node" >>log/start.log 2>&1 &
pids+=($!)
until_ 60 "the cluster is not up" sh -c 'sinfo -h -o %T | grep -q idle'
echo "Slurm $(sinfo --version | cut -d' ' -f2), $(nproc) processors, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs)"
echo "up after $SECONDS s"

cd work || exit 1
cat >models.toml <<TOML
[model.small]
encoder    = [{ kind = "gaussian_noise", stddev = 0.1 }, { kind = "dense", units = 16, activation = "sigmoid" }]
loss       = [{ kind = "mse" }, { kind = "kl", weight = 0.001, target = 0.2 }]
constraint = [{ kind = "nonneg" }]
optimizer  = { kind = "adam", learning_rate = 0.01 }
dataset    = { name = "swimmer", validation = 0.1 }
train      = { epochs = 4000, batch = 16, checkpoint_seconds = 1 }

[sweep.eight]
model  = "small"
seeds  = [1, 2]
select = "mse"
set.loss.1.target = [0.1, 0.3]
set.loss.1.weight = [1e-4, 1e-2]

[sweep.one]
model = "small"
set.train.epochs = ${EPOCHS:-60000}
TOML
"$tessera" sweep eight -o "an array" --emit slurm || fail "emit"
ln -s "an array" array # the scripts have the path with the space
job=$(sbatch --parsable "an array/array.sh") || fail "sbatch"
echo "job $job was submitted"

# compare WHOLE ARRAY FILE...: equal bytes of these files and of all trials.
compare() {
	local whole=$1 array=$2
	shift 2
	for file in "$@"; do
		cmp "$whole/$file" "$array/$file" || fail "$file differs"
	done
	for trial in "$whole"/trials/*; do
		for file in config.toml state.safetensors model.safetensors eval.json; do
			cmp "$trial/$file" "$array/trials/${trial##*/}/$file" || fail "$trial/$file differs"
		done
	done
}

# trains INDEX: whether its trial has begun to train. The trial of an index is that line of the manifest.
trials=($(sed -n 's/^ *"trial": "\(.*\)",/\1/p' array/manifest.json))
trains() { [ -s "array/trials/${trials[$1]}/metrics.jsonl" ] && [ ! -e "array/trials/${trials[$1]}/eval.json" ]; }
running() { squeue -h -j "${job}_$1" -o %T | grep -q RUNNING; }

until_ 120 "task 0 does not train" trains 0
timeout 10 scancel --batch --signal=USR1 "${job}_0"
echo "task 0: USR1 at epoch $(wc -l <"array/trials/${trials[0]}/metrics.jsonl")"
until_ 120 "task 1 does not train" trains 1
scontrol requeue "${job}_1" || fail "requeue of task 1"
echo "task 1: scontrol requeue at epoch $(wc -l <"array/trials/${trials[1]}/metrics.jsonl")"
until_ 120 "task 3 does not train" trains 3
timeout 10 scancel --signal=KILL --full "${job}_3"
echo "task 3: KILL at epoch $(wc -l <"array/trials/${trials[3]}/metrics.jsonl")"
gone() { ! running 3; }
until_ 60 "task 3 was not killed" gone
"$tessera" sweep eight --collect array >/dev/null 2>collected
echo "collect meanwhile: exit code $?: $(head -1 collected)"
scontrol requeue "${job}_3" || fail "requeue of task 3"
over() { [ -z "$(squeue -h -j "$job" 2>/dev/null)" ]; }
until_ 1200 "the array does not end" over
echo "the array ended after $SECONDS s"
grep -h "back to the queue" array/logs/*.log
"$tessera" sweep eight --collect array || fail "collect"
"$tessera" sweep eight -o whole --quiet >/dev/null || fail "the sweep on this machine"
compare whole array results.csv results.json summary.csv selected.csv
echo "results.csv, results.json, summary.csv, selected.csv and the states, parameters and metrics of 8 trials: equal bytes"
[ "${LIMIT:-}" ] || exit 0

SECONDS=0
"$tessera" sweep one -o one --emit slurm --quiet >/dev/null || fail "emit one"
job=$(sbatch --parsable --time=2 --signal=B:USR1@30 one/array.sh) || fail "sbatch one"
until_ 1200 "the trial with a time limit does not end" over
grep -h "back to the queue" one/logs/*.log || fail "the trial was not stopped before its limit"
"$tessera" sweep one --collect one >/dev/null || fail "collect one"
"$tessera" sweep one -o long --quiet >/dev/null || fail "the sweep one on this machine"
compare long one results.csv results.json
echo "a trial with a limit of 2 minutes ended after $SECONDS s: equal bytes"

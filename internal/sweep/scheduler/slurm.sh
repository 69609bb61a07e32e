#!/bin/bash
# The sweep <<printf "%q" .Sweep>> as a job array of Slurm: each task trains and measures one index of manifest.json.
#
#   sbatch <<.Path | quoted>>
#
# Options of sbatch replace those below, for example --time=4:00:00 --mem=2G --partition=NAME --account=NAME.
#SBATCH --job-name=<<.Label>>
#SBATCH --array=0-<<.Last>><<if .Parallel>>%<<.Parallel>><<end>>
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --output=<<.Logs | option>>
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120

tessera=${TESSERA:-<<.Program | quoted>>}
<<- if .Data>>
export TESSERA_DATA=${TESSERA_DATA:-<<.Data | quoted>>}
<<- end>>
cd <<.Work | quoted>> || exit 1

# USR1 comes 120 seconds before the time limit, TERM when Slurm itself preempts or cancels the task. The trial then writes a
# checkpoint and exits with 75 or 130.
trial=
signalled=
pass_on() {
	signalled=$1
	[ -z "$trial" ] || kill -s "$1" "$trial"
}
trap 'pass_on USR1' USR1
trap 'pass_on TERM' TERM

"$tessera" trial <<.Folder | quoted>> $((<<.First>> + SLURM_ARRAY_TASK_ID)) &
trial=$!
[ -z "$signalled" ] || kill -s "$signalled" "$trial" # it came before the line above
code=0
while :; do # a signal ends wait before the trial has ended
	signalled=
	wait "$trial"
	code=$?
	[ -n "$signalled" ] || break
done

if [ "$code" = 75 ]; then
	echo "task $SLURM_ARRAY_TASK_ID goes back to the queue; the trial continues from its checkpoint"
	scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"

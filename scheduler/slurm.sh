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
trap 'signalled=1; [ -z "$trial" ] || kill -USR1 "$trial"' USR1
trap 'signalled=1; [ -z "$trial" ] || kill -TERM "$trial"' TERM

"$tessera" trial <<.Folder | quoted>> $((<<.First>> + SLURM_ARRAY_TASK_ID)) &
trial=$!
code=0
signalled=1
while [ "$signalled" = 1 ]; do # a signal ends wait before the trial has ended
	signalled=0
	wait "$trial"
	code=$?
done

if [ "$code" = 75 ]; then
	echo "task $SLURM_ARRAY_TASK_ID goes back to the queue; the trial continues from its checkpoint"
	scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"

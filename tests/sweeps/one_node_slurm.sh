#!/bin/bash
# A Slurm cluster of one node on this machine, for tests: everything below one folder, loopback only.
#
#   one_node_slurm.sh start FOLDER    then: export SLURM_CONF=FOLDER/slurm.conf
#   one_node_slurm.sh stop FOLDER
#
# It needs Debian's packages slurm-wlm and munge, and no rights but those of the user who starts it.
# The path of FOLDER must be short: a socket lies in it.
set -eu
PATH=$PATH:/usr/sbin:/sbin
action=$1 folder=$(realpath -m "$2")

start() {
    mkdir -p "$folder"/{state,spool}
    chmod 755 "$folder"
    install -d -m 700 "$folder/key"
    (umask 077; head -c 128 /dev/urandom > "$folder/key/munge.key")
    munged --force --key-file="$folder/key/munge.key" --socket="$folder/munge.socket" \
        --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" \
        --seed-file="$folder/key/munge.seed"
    cat > "$folder/slurm.conf" <<END
ClusterName=one
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=16817
SlurmdPort=16818
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/jobs.txt
ReturnToService=2
SlurmdParameters=config_overrides
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
END
    export SLURM_CONF=$folder/slurm.conf
    slurmctld -c
    slurmd -c
    for _ in $(seq 100); do
        if sinfo --noheader --format=%T 2> /dev/null | grep -q idle; then return; fi
        sleep 0.2
    done
    echo "the node did not come up; see $folder/slurmctld.log and $folder/slurmd.log" >&2
    tail -5 "$folder"/*.log >&2
    exit 1
}

stop() {
    export SLURM_CONF=$folder/slurm.conf
    scancel --user="$(id -un)" 2> /dev/null || true
    sleep 1
    for name in slurmd slurmctld munged; do
        if [ -s "$folder/$name.pid" ]; then kill "$(cat "$folder/$name.pid")" || true; fi
    done
}

case $action in start | stop) "$action" ;; *) echo "say start or stop" >&2; exit 2 ;; esac

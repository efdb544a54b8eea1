A=(1 2)
source x.sh

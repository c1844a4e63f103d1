# The machines that can be booted by emulation: sourced with $name set, says what each is made of.
#
# kernel   "debian SUITE PACKAGE": by apt from Debian's archive, signatures checked, or "pinned":
#          Ubuntu's, by checksum
# pins     of a pinned kernel: pairs of checksum (SHA-256) and file below pool/main/l/
# extras   packages more that are unpacked into the guest's root
# disks    sizes in MiB; @0 is the file of the first
# arch     Debian's name of the architecture
# modules  loaded in this order with what they depend on
# boot     words of the boot line; "pgdyno.cgroup=1" or "2" are read by the guest's init
# qemu     the machine
export arch kernel pins extras modules boot qemu disks console
pins=""
extras=""
disks=""
console=ttyS0
x86="qemu-system-x86_64 -M q35 -accel tcg,thread=single -cpu max"
four_nodes="-smp 8,sockets=4,cores=2,threads=1 -m 1024
 -object memory-backend-ram,id=m0,size=256M -numa node,nodeid=0,cpus=0-1,memdev=m0
 -object memory-backend-ram,id=m1,size=256M -numa node,nodeid=1,cpus=2-3,memdev=m1
 -object memory-backend-ram,id=m2,size=256M -numa node,nodeid=2,cpus=4-5,memdev=m2
 -object memory-backend-ram,id=m3,size=256M -numa node,nodeid=3,cpus=6-7,memdev=m3
 -numa dist,src=0,dst=1,val=16 -numa dist,src=0,dst=2,val=32 -numa dist,src=0,dst=3,val=32
 -numa dist,src=1,dst=2,val=32 -numa dist,src=1,dst=3,val=32 -numa dist,src=2,dst=3,val=16"
net="-netdev user,id=n0,restrict=on -device virtio-net-pci,netdev=n0"

case $name in
x86_64-6.1-numa4)
  # Four sockets, two by two; data on ext4 on LVM on LUKS on a partition, WAL on a mirror of a
  # virtio and an NVMe disk.
  arch=amd64 kernel="debian bookworm linux-image-cloud-amd64"
  # dmsetup with the libraries it is linked with.
  extras="dmsetup libdevmapper1.02.1 libudev1 libselinux1 libpcre2-8-0 libc6"
  modules="virtio_pci virtio_blk virtio_net nvme dm_mod dm_crypt aes_generic xts ecb raid1 ext4 loop"
  boot="transparent_hugepage=madvise pgdyno.cgroup=2"
  disks="64 48 48 16"
  qemu="$x86 $four_nodes $net
   -drive if=none,id=d0,format=raw,file=@0 -device virtio-blk-pci,drive=d0,serial=fixture-data
   -drive if=none,id=d1,format=raw,file=@1 -device virtio-blk-pci,drive=d1,serial=fixture-mirror,num-queues=2
   -drive if=none,id=d2,format=raw,file=@2 -device nvme,drive=d2,serial=fixture-nvme
   -drive if=none,id=d3,format=raw,file=@3 -device virtio-blk-pci,drive=d3,serial=fixture-swap"
  ;;
x86_64-6.12-cgroup2)
  # Groups within groups, each with limits of its own.
  arch=amd64 kernel="debian trixie linux-image-cloud-amd64"
  modules="virtio_pci virtio_blk virtio_net ext4 ahci sd_mod"
  boot="pgdyno.cgroup=2"
  disks="48 32"
  # Threads of a core are what only that maker's processors have here.
  qemu="$x86,vendor=GenuineIntel -smp 4,sockets=1,cores=2,threads=2 -m 1024 $net
   -drive if=none,id=d0,format=raw,file=@0 -device virtio-blk-pci,drive=d0
   -drive if=none,id=d1,format=raw,file=@1 -device ide-hd,drive=d1,serial=fixture-sata,rotation_rate=7200"
  ;;
x86_64-5.10)
  arch=amd64 kernel="debian bullseye linux-image-cloud-amd64"
  modules="virtio_pci virtio_blk virtio_net ext4"
  boot="pgdyno.cgroup=2"
  disks="48"
  qemu="$x86 -smp 2 -m 512 $net -drive if=none,id=d0,format=raw,file=@0 -device virtio-blk-pci,drive=d0"
  ;;
x86_64-5.4-cgroup1)
  arch=amd64 kernel=pinned
  pins="efa339a2f568e03cd9285ec8a1c13bff5385c64d1d8c7d4bc1dbe9ac4e837c14
         linux-hwe-5.4/linux-modules-5.4.0-150-generic_5.4.0-150.167~18.04.1_amd64.deb
        3805ee34ea3f7ba896dc4af16993b37f85ac2fa991f2aca8b0976b2828c5bcf9
         linux-signed-hwe-5.4/linux-image-5.4.0-150-generic_5.4.0-150.167~18.04.1_amd64.deb"
  modules="virtio_blk virtio_net"
  boot="pgdyno.cgroup=1"
  disks="48"
  qemu="$x86 -smp 2 -m 512 $net -drive if=none,id=d0,format=raw,file=@0 -device virtio-blk-pci,drive=d0"
  ;;
x86_64-4.18-cgroup1)
  arch=amd64 kernel=pinned
  pins="d21662c73ba590cce15b4360a282120d7f12b0c2febb72dd655ffe2ee92d7eee
         linux-hwe/linux-modules-4.18.0-25-generic_4.18.0-25.26~18.04.1_amd64.deb
        5aa66e12e25b091d0cedb1eeaa66235bdb7d9889a484daec1f9e908d92beddef
         linux-signed-hwe/linux-image-4.18.0-25-generic_4.18.0-25.26~18.04.1_amd64.deb"
  modules="virtio_blk virtio_net"
  boot="pgdyno.cgroup=1"
  disks="48"
  qemu="$x86 -smp 2 -m 512 $net -drive if=none,id=d0,format=raw,file=@0 -device virtio-blk-pci,drive=d0"
  ;;
s390x-6.1)
  # Emulated without the facility that huge pages need: there are none at all.
  arch=s390x kernel="debian bookworm linux-image-s390x"
  modules="virtio_blk virtio_net crc32c_generic ext4"
  boot="pgdyno.cgroup=2"
  disks="48"
  console=ttysclp0
  qemu="qemu-system-s390x -M s390-ccw-virtio -accel tcg,thread=multi -cpu max -smp 2 -m 512
   -netdev user,id=n0,restrict=on -device virtio-net-ccw,netdev=n0
   -drive if=none,id=d0,format=raw,file=@0 -device virtio-blk-ccw,drive=d0"
  ;;
arm64-6.1)
  # Two nodes; four sizes of huge pages.
  arch=arm64 kernel="debian bookworm linux-image-cloud-arm64"
  modules="virtio_pci virtio_blk virtio_net ext4"
  boot="pgdyno.cgroup=2"
  disks="48"
  console=ttyAMA0
  qemu="qemu-system-aarch64 -M virt -accel tcg,thread=multi -cpu neoverse-n1 -smp 4,sockets=2,cores=2,threads=1 -m 768
   -object memory-backend-ram,id=m0,size=384M -numa node,nodeid=0,cpus=0-1,memdev=m0
   -object memory-backend-ram,id=m1,size=384M -numa node,nodeid=1,cpus=2-3,memdev=m1
   $net -drive if=none,id=d0,format=raw,file=@0 -device virtio-blk-pci,drive=d0"
  ;;
*)
  echo "$0: no machine is named $name; scripts/guest/machine.sh names them" >&2
  exit 2
  ;;
esac

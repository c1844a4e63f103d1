//! Moves the bytes of a drive with io_uring: all requests of a turn go with one system call, which
//! also waits for the replies; the kernel puts those into buffers that it is given beforehand.
//!
//! Source: io_uring_enter(2), io_uring_register(2), io_uring_setup(2).

use crate::connection::{Socket, Sockets};
use crate::drive::{Drive, Pause, SECOND_NS, Step};
use io_uring::types::{BufRingEntry, CancelBuilder, Fd, SubmitArgs, TimeoutFlags, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, shutdown};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Whether this build can use io_uring: its library vouches for its structures of the kernel's on
/// some architectures alone.
pub const HAS_IO_URING: bool = cfg!(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64",
    target_arch = "powerpc64"
));

/// Kernel's limit of a submission queue.
const ENTRIES_MAX: u32 = 32_768;
/// A reply of a workload is mostly far below this; longer ones take several buffers.
const BUFFER_BYTES: usize = 4096;
/// A buffer is in use only between a reply's arrival and its being read in the same turn.
const BUFFERS_MAX: u16 = 4096;
const GROUP: u16 = 0;
/// The largest page of any architecture: the ring of buffers begins at one.
const PAGE_BYTES: usize = 65_536;
/// The end of a ring waits at most this long for what is still under way.
const CANCEL_LIMIT: Timespec = Timespec::new().sec(1);

/// Set in the user data of a request to send; else it is one to receive.
const SENDING: u64 = 1 << 63;
/// The user data of a timer.
const TIMER: u64 = u64::MAX;

pub(crate) struct Uring {
    // The ring goes first: nothing that the kernel may still write to is freed before it.
    ring: IoUring,
    buffers: Buffers,
    connections: Vec<Connection>,
    /// Sockets of lost connections: requests about them may not have been handed over yet, and
    /// their numbers must not be given to others before.
    closing: Vec<Socket>,
    /// When a timer goes off next, or went off last, by the load's clock.
    armed_ns: u64,
    /// The same by the kernel's, where it can read it.
    timer: Box<Timespec>,
}

struct Connection {
    socket: Option<Socket>,
    /// Counts the connections of this client, so that late completions of an earlier one are known
    /// as such.
    generation: u16,
}

impl Uring {
    /// A ring for so many clients. Fails where the kernel is too old (before 6.1), or does not let
    /// this process use one.
    pub(crate) fn new(clients: u32) -> io::Result<Uring> {
        if !HAS_IO_URING {
            let why = "its structures are not known for this architecture";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let (ring, buffers) = set_up(clients)?;
        Ok(Uring {
            ring,
            buffers,
            connections: Vec::with_capacity(clients as usize),
            closing: Vec::new(),
            armed_ns: 0,
            timer: Box::new(Timespec::new()),
        })
    }

    /// Runs the drive to its end and returns the sockets.
    pub(crate) fn run(mut self, sockets: Vec<Socket>, drive: &mut Drive<'_>) -> io::Result<Sockets> {
        for (client, socket) in sockets.into_iter().enumerate() {
            self.connections.push(Connection {
                socket: Some(socket),
                generation: 0,
            });
            self.receive(client);
        }
        let began_ns = drive.began_ns();
        while let Step::Wait(pause) = drive.step() {
            while let Some((client, socket)) = drive.new_connection() {
                let connection = &mut self.connections[client as usize];
                connection.generation = connection.generation.wrapping_add(1);
                connection.socket = Some(socket);
                self.receive(client as usize);
                drive.revive(client);
            }
            while let Some(client) = drive.next_to_send() {
                self.send(drive, client);
            }
            self.wait(pause, began_ns)?;
            self.closing.clear();
            self.complete(drive);
        }
        let limit = Some(CANCEL_LIMIT);
        // What is under way holds addresses of requests and buffers: it ends before they do.
        let _ = self
            .ring
            .submitter()
            .register_sync_cancel(limit, CancelBuilder::any());
        let Uring {
            ring,
            buffers,
            connections,
            ..
        } = self;
        drop(ring);
        drop(buffers);
        let sockets = (0..).zip(connections);
        Ok(sockets
            .filter_map(|(client, connection)| Some((client, connection.socket?)))
            .collect())
    }

    /// Hands over what is queued and waits for the first completion, at most until the pause is
    /// over. A limit of its own for each wait would be set up and taken down by the kernel each
    /// time; a timer is set where none goes off by then.
    fn wait(&mut self, pause: Pause, began_ns: u64) -> io::Result<()> {
        let timespec = |ns: u64| Timespec::new().sec(ns / SECOND_NS).nsec((ns % SECOND_NS) as u32);
        let waited = if pause.ns() == 0 {
            let at_once = timespec(0);
            let arguments = SubmitArgs::new().timespec(&at_once);
            self.ring.submitter().submit_with_args(1, &arguments)
        } else {
            if !pause.ends_by(self.armed_ns) {
                self.armed_ns = pause.until_ns;
                *self.timer = timespec(began_ns + pause.until_ns);
                let entry = opcode::Timeout::new(&raw const *self.timer).flags(TimeoutFlags::ABS);
                self.push(&entry.build().user_data(TIMER));
            }
            self.ring.submit_and_wait(1)
        };
        match waited {
            Ok(_) => Ok(()),
            // Timed out, interrupted, or completions are to be taken first.
            Err(e) => match Errno::from_io_error(&e) {
                Some(Errno::TIME | Errno::INTR | Errno::BUSY) => Ok(()),
                _ => Err(e),
            },
        }
    }

    fn complete(&mut self, drive: &mut Drive<'_>) {
        loop {
            let Some(completion) = self.ring.completion().next() else {
                return;
            };
            let (result, flags, data) = (completion.result(), completion.flags(), completion.user_data());
            if data == TIMER {
                continue;
            }
            #[expect(clippy::cast_possible_truncation, reason = "packed by user_data()")]
            let (client, generation) = (data as u32, (data >> 32) as u16);
            let at = client as usize;
            let buffer = cqueue::buffer_select(flags);
            let connection = &self.connections[at];
            if connection.generation == generation && connection.socket.is_some() {
                self.completed(drive, client, data, result, buffer, cqueue::more(flags));
            }
            if let Some(buffer) = buffer {
                self.buffers.release(buffer);
            }
        }
    }

    fn completed(
        &mut self,
        drive: &mut Drive<'_>,
        client: u32,
        data: u64,
        result: i32,
        buffer: Option<u16>,
        more: bool,
    ) {
        let error = match (result, buffer) {
            (1.., Some(buffer)) => {
                let bytes = self.buffers.filled(buffer, result.unsigned_abs() as usize);
                if let Err(lost) = drive.feed(client, bytes) {
                    self.close(client);
                    return drive.lose(client, lost);
                }
                if !more {
                    self.receive(client as usize);
                }
                return;
            }
            // Out of buffers for a moment.
            (error, _) if error == -Errno::NOBUFS.raw_os_error() && data & SENDING == 0 => {
                return self.receive(client as usize);
            }
            (0, _) if data & SENDING == 0 => io::ErrorKind::UnexpectedEof.into(),
            (..0, _) => io::Error::from_raw_os_error(-result),
            _ => return,
        };
        self.close(client);
        drive.lose(client, error.into());
    }

    /// A request that is under way keeps the kernel's socket open: it must end first.
    fn close(&mut self, client: u32) {
        if let Some(socket) = self.connections[client as usize].socket.take() {
            let _ = shutdown(&socket, Shutdown::Both);
            self.closing.push(socket);
        }
    }

    fn user_data(&self, client: usize) -> u64 {
        client as u64 | u64::from(self.connections[client].generation) << 32
    }

    /// Asks for whatever arrives, from now on.
    fn receive(&mut self, client: usize) {
        let Some(socket) = &self.connections[client].socket else {
            return;
        };
        let entry = opcode::RecvMulti::new(Fd(socket.as_fd().as_raw_fd()), GROUP)
            .build()
            .user_data(self.user_data(client));
        self.push(&entry);
    }

    fn send(&mut self, drive: &Drive<'_>, client: u32) {
        // The kernel goes on until all of it is sent.
        let whole = RecvFlags::WAITALL.bits() | SendFlags::NOSIGNAL.bits();
        let Some(socket) = &self.connections[client as usize].socket else {
            return;
        };
        let request = drive.request(client);
        let length = u32::try_from(request.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fd(socket.as_fd().as_raw_fd()), request.as_ptr(), length)
            .flags(whole.cast_signed())
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(self.user_data(client as usize) | SENDING);
        self.push(&entry);
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: what an entry points to lives as long as it may be under way. Requests are in
        // memory of the drive that never moves and outlives this ring; buffers belong to this ring
        // and go after it; a timer's instant is read when it is handed over, which the next wait
        // does.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // Full: what is queued goes first.
            let _ = self.ring.submit();
        }
    }
}

fn set_up(clients: u32) -> io::Result<(IoUring, Buffers)> {
    let entries = (clients.max(1) * 2).next_power_of_two().clamp(8, ENTRIES_MAX);
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_clamp()
        .setup_cqsize((entries * 2).min(2 * ENTRIES_MAX))
        .build(entries)?;
    let wanted = u16::try_from(clients).unwrap_or(u16::MAX).clamp(8, BUFFERS_MAX);
    let buffers = Buffers::new(wanted.next_power_of_two());
    // SAFETY: the memory lives until the ring is gone (the order of the fields of `Uring`, and of
    // the drops here).
    unsafe {
        ring.submitter().register_buf_ring_with_flags(
            buffers.entries.as_ptr() as u64,
            buffers.count,
            GROUP,
            0,
        )?;
    }
    Ok((ring, buffers))
}

/// Buffers for replies, and the ring of entries through which the kernel is given them.
struct Buffers {
    entries: NonNull<BufRingEntry>,
    count: u16,
    tail: u16,
    memory: Vec<u8>,
}

impl Buffers {
    /// `count` is a power of two.
    fn new(count: u16) -> Buffers {
        let layout = layout(count);
        // SAFETY: the layout is not of size zero; zeros are valid entries.
        let memory = unsafe { alloc_zeroed(layout) };
        let entries = NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout));
        let mut buffers = Buffers {
            entries,
            count,
            tail: 0,
            memory: vec![0; usize::from(count) * BUFFER_BYTES],
        };
        for number in 0..count {
            buffers.release(number);
        }
        buffers
    }

    fn filled(&self, number: u16, length: usize) -> &[u8] {
        let start = usize::from(number) * BUFFER_BYTES;
        &self.memory[start..start + length.min(BUFFER_BYTES)]
    }

    fn release(&mut self, number: u16) {
        let slot = usize::from(self.tail & (self.count - 1));
        let address = self.memory[usize::from(number) * BUFFER_BYTES..].as_ptr() as u64;
        // SAFETY: the slot is inside the allocation of `count` entries, and the kernel reads none
        // from the tail on.
        unsafe {
            let entry = self.entries.add(slot).as_mut();
            entry.set_addr(address);
            #[expect(clippy::cast_possible_truncation, reason = "a constant")]
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(number);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the first entry of a ring of buffers holds its tail, which the kernel reads and
        // only this writes.
        unsafe {
            let tail = BufRingEntry::tail(self.entries.as_ptr()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.entries.as_ptr().cast(), layout(self.count)) }
    }
}

fn layout(count: u16) -> Layout {
    let bytes = usize::from(count) * size_of::<BufRingEntry>();
    Layout::from_size_align(bytes, PAGE_BYTES).expect("a constant alignment and a small size")
}

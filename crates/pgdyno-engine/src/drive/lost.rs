//! Connections of a drive that are lost, and those that come in their place.

use super::{Drive, RECONNECT_CHECK_NS};
use crate::books::Instants;
use crate::client::{Lost, Outcome};
use crate::connection::{Connection, Socket};
use std::cmp::Reverse;
use std::time::Duration;

impl Drive<'_> {
    /// A client's connection is gone, or could not be made; a new one is asked for, or made by the
    /// next transaction.
    pub(crate) fn lose(&mut self, client: u32, lost: Lost) {
        let at = client as usize;
        // A transaction's own connection that could not be made has cost nothing but this
        // transaction; the reason of the first one is reported.
        let had_none = self.wants_no_connection(client);
        let connects = self.part.connections.is_some();
        if !connects {
            self.alive -= 1;
        }
        if !self.clients[at].is_idle() {
            let code = self.clients[at].last_error().unwrap_or(lost.code);
            self.note_error(at, code, Some(&lost.reason));
        }
        if had_none {
            if self.part.notes.is_empty() {
                self.part.notes.push(lost.reason);
            }
        } else {
            let entry = self.part.lost.get_or_insert((lost.reason, 0));
            entry.1 += 1;
        }
        self.waiting.retain(|Reverse((_, other))| *other != client);
        if self.clients[at].is_idle() {
            self.free.retain(|&other| other != client);
        } else {
            // The server may have committed it all the same.
            self.part.in_flight_at_end += u64::from(!had_none);
            self.busy -= 1;
            self.to_send.retain(|&other| other != client);
            let code = self.clients[at].last_error().unwrap_or(lost.code);
            let instants = Instants {
                due_ns: self.clients[at].due_ns,
                begun_ns: self.clients[at].begun_ns,
                done_ns: self.now_ns(),
            };
            let tries = self.clients[at].tries;
            self.book(at, instants, Outcome::Failed(code), tries);
        }
        let was_idle = self.clients[at].is_idle();
        self.clients[at].renew(None);
        let now = self.now_ns();
        match (self.clients[at].has_ended(), was_idle) {
            (false, _) if connects => self.waiting.push(Reverse((now + RECONNECT_CHECK_NS, client))),
            (false, _) if now < self.limits.end_ns => self.reconnector.ask_for(client),
            // With nothing left to do it needs no connection; that it had ended was counted when it
            // became idle.
            (true, false) => self.count_ended(now),
            _ => {}
        }
        if self.alive == 0 {
            self.gone_ns = now;
        }
    }

    /// A new connection for a client that had lost its own, if one has come: attach it, and call
    /// [`Drive::revive`].
    pub(crate) fn new_connection(&mut self) -> Option<(u32, Socket)> {
        if self.alive == self.clients() {
            return None;
        }
        let made = self.reconnector.take();
        self.accept(made)
    }

    fn accept(&mut self, made: Option<(u32, Connection)>) -> Option<(u32, Socket)> {
        let (client, connection) = made?;
        self.clients[client as usize].renew(connection.tls);
        Some((client, connection.socket))
    }

    /// The same, with some patience.
    pub(crate) fn wait_for_connection(&mut self, limit: Duration) -> Option<(u32, Socket)> {
        let made = self.reconnector.take_within(limit);
        self.accept(made)
    }

    /// A new connection that could not be attached: another one is asked for.
    pub(crate) fn refused(&mut self, client: u32) {
        self.reconnector.ask_for(client);
    }

    pub(crate) fn revive(&mut self, client: u32) {
        self.alive += 1;
        self.part.sessions += 1;
        self.go_on(client, self.now_ns());
    }
}

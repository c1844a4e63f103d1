//! Names of functions by their addresses, from the symbols of a program or library and from the
//! kernel's list.

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// No program has near as many functions.
const FUNCTIONS_MAX: usize = 1_000_000;
/// Characters of a name, of which a compiler makes long ones.
const NAME_MAX: usize = 120;

/// The functions of one program, library or kernel.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// By their first addresses, each with the address after its last one.
    all: Vec<(u64, u64, String)>,
    /// What is loaded of the file: offset, length and address of each part.
    loaded: Vec<(u64, u64, u64)>,
}

impl Functions {
    /// Of an ELF file. What has no symbols has no functions.
    pub(crate) fn of_program(bytes: &[u8]) -> Functions {
        let Ok(program) = object::File::parse(bytes) else {
            return Functions::default();
        };
        let loaded = program.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            (offset, length, segment.address())
        });
        // A stripped program still has those that it exports.
        let symbols = program.symbols().chain(program.dynamic_symbols());
        let functions = symbols
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), named(symbol.name().ok()?))));
        Functions {
            loaded: loaded.collect(),
            ..Functions::of(functions)
        }
    }

    /// Of the kernel's list (/proc/kallsyms): address, kind and name in each line. Addresses that
    /// the kernel hides are 0.
    pub(crate) fn of_kernel(list: &str) -> Functions {
        Functions::of(list.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
            (is_code && address > 0).then(|| Some((address, 0, named(words.next()?))))?
        }))
    }

    fn of(functions: impl Iterator<Item = (u64, u64, String)>) -> Functions {
        let mut all: Vec<(u64, u64, String)> = functions
            .take(FUNCTIONS_MAX)
            .map(|(start, size, name)| (start, start.saturating_add(size), name))
            .collect();
        all.sort_unstable();
        all.dedup_by_key(|(start, ..)| *start);
        // One of unknown size goes on to the next.
        let starts: Vec<u64> = all.iter().map(|(start, ..)| *start).collect();
        for (place, (start, end, _)) in all.iter_mut().enumerate() {
            if *end == *start {
                *end = starts.get(place + 1).copied().unwrap_or(u64::MAX);
            }
        }
        Functions {
            all,
            loaded: Vec::new(),
        }
    }

    /// The function at an offset of the file.
    pub(crate) fn at_offset(&self, offset: u64) -> Option<String> {
        let mut loaded = self.loaded.iter();
        let address = loaded.find_map(|(from, length, address)| {
            let within = offset.checked_sub(*from).filter(|within| within < length)?;
            address.checked_add(within)
        })?;
        self.at(address)
    }

    /// The function at an address. One without a symbol is after the one before it, as a rule of
    /// the same source file.
    pub(crate) fn at(&self, address: u64) -> Option<String> {
        let after = self.all.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.all.get(after.checked_sub(1)?)?;
        Some(match address < *end {
            true => name.clone(),
            false => format!("static, after {name}"),
        })
    }
}

fn named(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_graphic)
        .take(NAME_MAX)
        .collect()
}

/// A part of a file that a process may execute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    end: u64,
    /// Where `start` is in the file.
    offset: u64,
    /// Start and end as the kernel writes them: "55d0c000-55e1f000".
    pub(crate) range: String,
    /// Device and inode: what identifies the file.
    pub(crate) file: (String, u64),
    pub(crate) path: String,
}

impl Mapping {
    /// Those of a process's /proc/PID/maps; without what is no file.
    pub(crate) fn all(maps: &str) -> Vec<Mapping> {
        maps.lines().filter_map(Mapping::of).collect()
    }

    fn of(line: &str) -> Option<Mapping> {
        let mut fields = line.splitn(6, ' ');
        let range = fields.next()?;
        let (start, end) = range.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let may_execute = fields.next()?.contains('x');
        let offset = number(fields.next()?)?;
        let device = fields.next()?;
        let inode: u64 = fields.next()?.parse().ok()?;
        let path = fields.next()?.trim_start();
        (may_execute && inode > 0).then(|| {
            Some(Mapping {
                start: number(start)?,
                end: number(end)?,
                offset,
                range: range.to_owned(),
                file: (device.to_owned(), inode),
                path: path.to_owned(),
            })
        })?
    }

    /// The offset of an address in the file; `None` where it is not in this part.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let within = address.checked_sub(self.start).filter(|_| address < self.end)?;
        self.offset.checked_add(within)
    }

    /// Name of the file, without its directory: "postgres".
    pub(crate) fn name(&self) -> String {
        let path = self.path.trim_end_matches(" (deleted)");
        named(path.rsplit('/').next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[inline(never)]
    fn looked_for() -> u64 {
        std::hint::black_box(7)
    }

    #[test]
    fn a_function_of_this_program_is_found_by_its_address() {
        let address = looked_for as fn() -> u64 as usize as u64;
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let all = Mapping::all(&maps);
        let mapping = all.iter().find(|mapping| mapping.offset_of(address).is_some());
        let (mapping, program) = (mapping.unwrap(), fs::read("/proc/self/exe").unwrap());
        let functions = Functions::of_program(&program);
        let found = functions.at_offset(mapping.offset_of(address).unwrap()).unwrap();
        assert!(found.contains("looked_for"), "{found}");
        assert!(mapping.name().starts_with("pgdyno_host"), "{mapping:?}");
        assert_eq!(Functions::of_program(&program[..100]).at(address), None);
    }

    #[test]
    fn what_has_no_symbol_is_after_the_one_before_it() {
        let functions = Functions::of(
            [(100, 10, "first"), (200, 0, "second"), (300, 5, "third")]
                .map(|(start, size, name)| (start, size, name.to_owned()))
                .into_iter(),
        );
        for (address, expected) in [
            (99, None),
            (100, Some("first")),
            (110, Some("static, after first")),
            (299, Some("second")),
            (304, Some("third")),
            (305, Some("static, after third")),
        ] {
            assert_eq!(functions.at(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn functions_of_the_kernel_go_on_to_the_next_and_hidden_ones_are_none() {
        let list = "ffffffff81000000 T _stext\nffffffff81000100 t do_one\nffffffff81000180 D data\n\
                    ffffffff81000200 W do_two\t[module]\n";
        let functions = Functions::of_kernel(list);
        assert_eq!(functions.at(0xffff_ffff_8100_01ff).as_deref(), Some("do_one"));
        assert_eq!(functions.at(0xffff_ffff_8100_0300).as_deref(), Some("do_two"));
        assert_eq!(Functions::of_kernel("0000000000000000 T _stext\nx").at(5), None);
    }

    #[test]
    fn parts_of_files_that_may_be_executed_are_read_from_maps() {
        let maps = "55d0c000-55e1f000 r-xp 00010000 fe:00 1234                     /usr/lib/my server/postgres\n\
                    55e1f000-55f1f000 r--p 00123000 fe:00 1234                     /usr/lib/my server/postgres\n\
                    7ffc0000-7ffc2000 r-xp 00000000 00:00 0                        [vdso]\nnonsense\n";
        let all = Mapping::all(maps);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].name(), "postgres");
        assert_eq!(all[0].offset_of(0x55d0_c010), Some(0x10010));
        assert_eq!(all[0].offset_of(0x55e1_f000), None);
    }
}

//! The code of all crates as what it mentions: paths, method calls, macros, literals. What only
//! tests compile is not part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// Something that code mentions.
#[derive(Debug)]
pub(crate) struct Mention {
    pub line: usize,
    pub what: Mentioned,
}

#[derive(Debug)]
pub(crate) enum Mentioned {
    /// A path with what the file's `use` declarations say of its first segment. A glob ends in `*`.
    Path {
        segments: Vec<String>,
        /// Whether it is called without arguments.
        bare_call: bool,
    },
    /// `.name(...)`
    Method(String),
    /// `name!(...)`, with its path.
    Macro(Vec<String>),
    /// A string, byte string or C string.
    Literal(String),
}

/// A file, or a text in place of one.
#[derive(Debug)]
pub(crate) struct Source {
    /// Below `crates/`.
    pub path: String,
    pub mentions: Vec<Mention>,
    /// Names that it hands on by a `use` with a visibility, and their paths.
    pub exports: BTreeMap<String, Vec<String>>,
}

impl Source {
    pub(crate) fn of(path: &str, text: &str) -> Self {
        let parsed = parsed(path, text, false);
        Self {
            path: path.to_owned(),
            mentions: parsed.mentions,
            exports: parsed.exports,
        }
    }
}

/// All files of all crates that are compiled without tests, and those that are compiled with them
/// alone.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub sources: Vec<Source>,
    /// Below `crates/`.
    pub for_tests: BTreeSet<String>,
}

/// Crates that only tests use (arrows.rs).
const FOR_TESTS: [&str; 2] = ["pgdyno-fixture", "pgdyno-testing"];

/// Parsed once for all tests of a process.
pub(crate) static CODE: LazyLock<Code> = LazyLock::new(|| {
    let mut code = Code::default();
    for entry in fs::read_dir(crates()).expect("readable").flatten() {
        let for_tests = FOR_TESTS.iter().any(|name| entry.file_name() == *name);
        for root in ["src/lib.rs", "src/main.rs"] {
            let root = entry.path().join(root);
            if root.exists() {
                let modules = root.parent().expect("a directory").to_owned();
                code.follow(&root, &modules, for_tests);
            }
        }
    }
    code.sources.sort_by(|a, b| a.path.cmp(&b.path));
    code
});

pub(crate) fn crates() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("crates/").to_owned()
}

/// All files below `src` of all crates, below `crates/`.
pub(crate) fn files() -> Vec<String> {
    fn walk(directory: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(crates()).expect("below crates/");
                found.push(below.to_string_lossy().into_owned());
            }
        }
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(crates()).expect("readable").flatten() {
        walk(&entry.path().join("src"), &mut found);
    }
    found
}

impl Code {
    /// A file, and the files of the modules that it declares, which are in `modules`.
    fn follow(&mut self, file: &Path, modules: &Path, for_tests: bool) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let below = file.strip_prefix(crates()).expect("below crates/");
        let path = below.to_string_lossy().into_owned();
        let parsed = parsed(&path, &text, for_tests);
        if for_tests {
            self.for_tests.insert(path);
        } else {
            let (mentions, exports) = (parsed.mentions, parsed.exports);
            self.sources.push(Source {
                path,
                mentions,
                exports,
            });
        }
        for module in parsed.modules {
            let inside = modules.join(&module.path);
            let beside = inside.with_extension("rs");
            let file = if beside.exists() {
                beside
            } else {
                inside.join("mod.rs")
            };
            self.follow(&file, &inside, for_tests || module.for_tests);
        }
    }
}

/// `mod name;`
struct Module {
    /// From the directory of the file's modules.
    path: PathBuf,
    for_tests: bool,
}

struct Parsed {
    mentions: Vec<Mention>,
    modules: Vec<Module>,
    exports: BTreeMap<String, Vec<String>>,
}

fn parsed(path: &str, text: &str, for_tests: bool) -> Parsed {
    let file = syn::parse_file(text).unwrap_or_else(|error| {
        panic!("{path}:{}: {error}", error.span().start().line);
    });
    let mut names = Names::default();
    names.visit_file(&file);
    let mut look = Look {
        file: path,
        names: names.used,
        inline: PathBuf::new(),
        for_tests,
        found: Parsed {
            mentions: Vec::new(),
            modules: Vec::new(),
            exports: names.exported,
        },
    };
    look.visit_file(&file);
    look.found
}

/// What the `use` declarations of a file, in whatever scope, say of a name.
#[derive(Default)]
struct Names {
    used: BTreeMap<String, BTreeSet<Vec<String>>>,
    exported: BTreeMap<String, Vec<String>>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_exported = !matches!(item.vis, syn::Visibility::Inherited);
        each_use(&item.tree, &mut Vec::new(), &mut |path, name, _| {
            if is_exported {
                self.exported.insert(name.to_owned(), path.to_vec());
            }
            if path.first().is_some_and(|first| first != name) {
                self.used
                    .entry(name.to_owned())
                    .or_default()
                    .insert(path.to_vec());
            }
        });
    }
}

/// Each path that a `use` brings, with its name.
fn each_use(tree: &syn::UseTree, above: &mut Vec<String>, each: &mut impl FnMut(&[String], &str, Span)) {
    let mut leaf = |last: &syn::Ident, name: &syn::Ident, above: &mut Vec<String>| {
        let itself = last == "self";
        if !itself {
            above.push(last.to_string());
        }
        let name = if name == "self" {
            above.last().cloned().unwrap_or_default()
        } else {
            name.to_string()
        };
        each(above, &name, last.span());
        if !itself {
            above.pop();
        }
    };
    match tree {
        syn::UseTree::Path(path) => {
            above.push(path.ident.to_string());
            each_use(&path.tree, above, each);
            above.pop();
        }
        syn::UseTree::Name(name) => leaf(&name.ident, &name.ident, above),
        syn::UseTree::Rename(name) => leaf(&name.ident, &name.rename, above),
        syn::UseTree::Glob(glob) => {
            above.push("*".to_owned());
            each(above, "*", glob.star_token.spans[0]);
            above.pop();
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                each_use(tree, above, each);
            }
        }
    }
}

struct Look<'a> {
    file: &'a str,
    names: BTreeMap<String, BTreeSet<Vec<String>>>,
    /// Names of the inline modules around.
    inline: PathBuf,
    for_tests: bool,
    found: Parsed,
}

impl Look<'_> {
    fn note(&mut self, span: Span, what: Mentioned) {
        if !self.for_tests {
            let line = span.start().line;
            self.found.mentions.push(Mention { line, what });
        }
    }

    /// A path as it is written, and as each `use` of its first segment has it.
    fn meanings(&self, segments: Vec<String>) -> Vec<Vec<String>> {
        let meant = segments.first().and_then(|first| self.names.get(first));
        let of_use = |start: &Vec<String>| start.iter().chain(&segments[1..]).cloned().collect();
        let mut meanings: Vec<Vec<String>> = meant.into_iter().flatten().map(of_use).collect();
        meanings.push(segments);
        meanings
    }

    fn note_path(&mut self, span: Span, segments: Vec<String>, bare_call: bool) {
        for segments in self.meanings(segments) {
            self.note(span, Mentioned::Path { segments, bare_call });
        }
    }

    fn note_macro(&mut self, span: Span, path: Vec<String>) {
        for path in self.meanings(path) {
            self.note(span, Mentioned::Macro(path));
        }
    }

    fn note_literal(&mut self, literal: &syn::Lit) {
        let text = match literal {
            syn::Lit::Str(text) => text.value(),
            syn::Lit::ByteStr(bytes) => String::from_utf8_lossy(&bytes.value()).into_owned(),
            syn::Lit::CStr(text) => text.value().to_string_lossy().into_owned(),
            _ => return,
        };
        self.note(literal.span(), Mentioned::Literal(text));
    }

    /// What a macro or an attribute gets is not syntax tree: the same is read from its tokens.
    fn tokens(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let is = |at: usize, sign: char| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == sign);
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => self.note_literal(&syn::Lit::new(literal.clone())),
                TokenTree::Ident(first) => {
                    let mut segments = vec![first.to_string()];
                    let after_dot = at > 0 && is(at - 1, '.') && !(at > 1 && is(at - 2, '.'));
                    while is(at + 1, ':') && is(at + 2, ':') {
                        let Some(TokenTree::Ident(next)) = tokens.get(at + 3) else {
                            break;
                        };
                        segments.push(next.to_string());
                        at += 3;
                    }
                    let arguments = match tokens.get(at + 1) {
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                            Some(group)
                        }
                        _ => None,
                    };
                    let turbofish = is(at + 1, ':') && is(at + 2, ':') && is(at + 3, '<');
                    let span = first.span();
                    if is(at + 1, '!') && matches!(tokens.get(at + 2), Some(TokenTree::Group(_))) {
                        self.note_macro(span, segments);
                    } else if after_dot && (arguments.is_some() || turbofish) {
                        self.note(span, Mentioned::Method(segments.remove(0)));
                    } else if !after_dot {
                        let bare = arguments.is_some_and(|group| group.stream().is_empty());
                        self.note_path(span, segments, bare);
                    }
                }
                TokenTree::Punct(_) => {}
            }
            at += 1;
        }
    }

    /// Visits what has these attributes, as code for tests where they say so.
    fn guarded(&mut self, attributes: &[syn::Attribute], visit: impl FnOnce(&mut Self)) {
        let around = self.for_tests;
        self.for_tests |= attributes.iter().any(is_for_tests);
        visit(self);
        self.for_tests = around;
    }
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect()
}

fn span(path: &syn::Path) -> Span {
    path.segments
        .first()
        .map_or_else(Span::call_site, |segment| segment.ident.span())
}

/// `#[test]`, and a `#[cfg]` that does not hold outside of tests.
fn is_for_tests(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("test")
        || (attribute.path().is_ident("cfg")
            && attribute
                .parse_args()
                .is_ok_and(|condition| outside_tests(&condition) == Some(false)))
}

/// Whether a condition holds where `test` does not; none: it depends on something else.
fn outside_tests(condition: &syn::Meta) -> Option<bool> {
    let syn::Meta::List(list) = condition else {
        return condition.path().is_ident("test").then_some(false);
    };
    let inner = list
        .parse_args_with(syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated)
        .ok()?;
    let each: Vec<Option<bool>> = inner.iter().map(outside_tests).collect();
    let decided_by = |value: bool| {
        let all_others = each.iter().all(|one| *one == Some(!value));
        if each.contains(&Some(value)) {
            Some(value)
        } else {
            all_others.then_some(!value)
        }
    };
    match list.path.get_ident()?.to_string().as_str() {
        "all" => decided_by(false),
        "any" => decided_by(true),
        "not" => each.first().copied().flatten().map(|holds| !holds),
        _ => None,
    }
}

/// The attributes of a syntax tree's node of many kinds; none of kinds that can have none.
macro_rules! attributes {
    ($node:expr, $of:ident: $($kind:ident)+) => {
        match $node {
            $(syn::$of::$kind(node) => &node.attrs[..],)+
            _ => &[],
        }
    };
}

impl<'ast> Visit<'ast> for Look<'_> {
    fn visit_file(&mut self, file: &'ast syn::File) {
        self.guarded(&file.attrs, |look| visit::visit_file(look, file));
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = attributes!(item, Item:
            Const Enum ExternCrate Fn ForeignMod Impl Macro Mod Static Struct Trait TraitAlias Type Union Use);
        self.guarded(attributes, |look| visit::visit_item(look, item));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = attributes!(item, ImplItem: Const Fn Type Macro);
        self.guarded(attributes, |look| visit::visit_impl_item(look, item));
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        let attributes = attributes!(item, TraitItem: Const Fn Type Macro);
        self.guarded(attributes, |look| visit::visit_trait_item(look, item));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.guarded(&local.attrs, |look| visit::visit_local(look, local));
    }

    fn visit_stmt_macro(&mut self, call: &'ast syn::StmtMacro) {
        self.guarded(&call.attrs, |look| visit::visit_stmt_macro(look, call));
    }

    fn visit_expr(&mut self, expression: &'ast syn::Expr) {
        let attributes = attributes!(expression, Expr:
            Assign Await Binary Block Call Const ForLoop If Loop Macro Match MethodCall Return Struct Try Unsafe While);
        self.guarded(attributes, |look| visit::visit_expr(look, expression));
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.guarded(&arm.attrs, |look| visit::visit_arm(look, arm));
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.guarded(&field.attrs, |look| visit::visit_field(look, field));
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        self.guarded(&field.attrs, |look| visit::visit_field_value(look, field));
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.guarded(&variant.attrs, |look| visit::visit_variant(look, variant));
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let elsewhere = module
            .attrs
            .iter()
            .any(|attribute| attribute.path().is_ident("path"));
        if elsewhere && self.for_tests {
            return;
        }
        assert!(
            !elsewhere,
            "{}: #[path] of `mod {}` is not followed",
            self.file, module.ident
        );
        self.inline.push(module.ident.to_string());
        if module.content.is_none() {
            self.found.modules.push(Module {
                path: self.inline.clone(),
                for_tests: self.for_tests,
            });
        }
        visit::visit_item_mod(self, module);
        self.inline.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        each_use(&item.tree, &mut Vec::new(), &mut |path, _, span| {
            self.note(
                span,
                Mentioned::Path {
                    segments: path.to_vec(),
                    bare_call: false,
                },
            );
        });
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.note_path(span(path), segments(path), false);
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let (syn::Expr::Path(function), true) = (&*call.func, call.args.is_empty()) {
            self.note_path(span(&function.path), segments(&function.path), true);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.note(call.method.span(), Mentioned::Method(call.method.to_string()));
        visit::visit_expr_method_call(self, call);
    }

    fn visit_lit(&mut self, literal: &'ast syn::Lit) {
        self.note_literal(literal);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        assert!(
            !call.path.is_ident("include"),
            "{}: include! is not followed",
            self.file
        );
        self.note_macro(span(&call.path), segments(&call.path));
        self.tokens(call.tokens.clone());
    }

    /// Documentation is not code.
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if !attribute.path().is_ident("doc") && !attribute.path().is_ident("cfg") {
            self.note_path(span(attribute.path()), segments(attribute.path()), false);
            match &attribute.meta {
                syn::Meta::Path(_) => {}
                syn::Meta::List(list) => self.tokens(list.tokens.clone()),
                syn::Meta::NameValue(pair) => self.visit_expr(&pair.value),
            }
        }
    }
}

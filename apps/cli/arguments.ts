/** A lone dash with two or more letters, as Go programs write their flags: `-listen`, `-listen=:8080`. */
const goStyleFlag = /^-[a-zA-Z][a-zA-Z-]+(=.*)?$/

/** Lets `-name` stand for `--name`. */
export function doubleDashes(argv: readonly string[]): string[] {
  return argv.map((word) => (goStyleFlag.test(word) ? `-${word}` : word))
}

/** Parts a command line at the bare `--`: what follows belongs to the child command and is never read as flags. */
export function partAtDashes(argv: readonly string[]): { readonly own: string[]; readonly child: string[] } {
  const end = argv.indexOf('--')
  return end === -1 ? { own: [...argv], child: [] } : { own: argv.slice(0, end), child: argv.slice(end + 1) }
}

/** A lone dash with two or more letters, as Go programs write their flags: `-listen`, `-listen=:8080`. */
const goStyleFlag = /^-[a-zA-Z][a-zA-Z-]+(=.*)?$/

/** Lets `-name` stand for `--name`; what follows a bare `--` belongs to the child command and is left alone. */
export function doubleDashes(argv: readonly string[]): string[] {
  const end = argv.indexOf('--')
  return argv.map((word, index) => (goStyleFlag.test(word) && (end === -1 || index < end) ? `-${word}` : word))
}

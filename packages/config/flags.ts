import { closest, formatDuration, parseDuration } from '@plat/core'

interface FlagBase {
  /** Purpose in one sentence, without the default. */
  help: string
  /** Heading in the usage text; default: the first group of the table. */
  group?: string
}

/** One flag of a binary. Without a default a flag has the empty value of its type: `''`, false, 0, 0 ms, an empty list. */
export type Flag = FlagBase &
  /** `url`: its setting has no slash at the end. */
  (
    | { type: 'string'; default?: string; oneOf?: readonly string[]; url?: true }
    | { type: 'bool'; default?: boolean }
    | { type: 'int'; default?: number; min?: number; max?: number }
    /** Go style (`15m`, `250ms`); the value is in milliseconds. */
    | { type: 'duration'; default?: number; min?: number; max?: number }
    /** Separated by commas; a repeated flag appends. */
    | { type: 'list'; default?: readonly string[] }
  )

/** Flag names without the dash, in the order of the usage text. */
export type FlagTable = Readonly<Record<string, Flag>>

interface ValueOf {
  string: string
  bool: boolean
  int: number
  duration: number
  list: readonly string[]
}

export type FlagValues<T extends FlagTable> = { readonly [K in keyof T]: ValueOf[T[K]['type']] }

type Camel<N extends string> = N extends `${infer First}-${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : N

type SettingName<N, F extends Flag> = `${Camel<N & string>}${F['type'] extends 'duration' ? 'Ms' : ''}`

type SettingValue<F extends Flag> = F extends { oneOf: readonly (infer One)[] } ? One : ValueOf[F['type']]

/** The values of flags by their names in camel case, those of durations with `Ms` at the end: `-token-ttl` is `tokenTtlMs`. */
export type SettingsOf<T extends FlagTable> = { readonly [K in keyof T as SettingName<K, T[K]>]: SettingValue<T[K]> }

export type ParsedFlags<T extends FlagTable> =
  | { ok: true; values: FlagValues<T>; given: ReadonlySet<string> }
  /** `help`: the user requested the usage text, which is not an error (status 0); otherwise status 2. */
  | { ok: false; help: boolean; message: string; usage: string }

type Value = ValueOf[Flag['type']]

/**
 * Parses Go-style flags: `-name value`, `-name=value`, `--name`; a bool takes a value only after `=`. Positional arguments are refused. `program` is
 * the name in the usage text.
 */
export function parseFlags<const T extends FlagTable>(
  table: T,
  argv: readonly string[],
  program = 'program',
): ParsedFlags<T> {
  const values = new Map<string, Value>(Object.entries(table).map(([name, flag]) => [name, initial(flag)]))
  const given = new Set<string>()
  const refuse = (message: string, help = false) => ({
    ok: false as const,
    help,
    message,
    usage: usage(table, program),
  })
  for (let at = 0; at < argv.length; at++) {
    const argument = argv[at] ?? ''
    const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(argument)
    const name = match?.[1]
    if (name === undefined) return refuse(`unexpected argument ${JSON.stringify(argument)}`)
    const flag = Object.hasOwn(table, name) ? table[name] : undefined
    if (flag === undefined) {
      return name === 'h' || name === 'help' ? refuse('', true) : refuse(unknownFlag(name, Object.keys(table)))
    }
    const text = match?.[2] ?? (flag.type === 'bool' ? 'true' : argv[++at])
    if (text === undefined) return refuse(`flag -${name} needs a value`)
    const value = read(flag, text)
    if (typeof value === 'object' && 'fault' in value) return refuse(`flag -${name} ${value.fault}`)
    const before = given.has(name) ? values.get(name) : undefined
    values.set(name, Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value)
    given.add(name)
  }
  // Every name of the table has a value of its flag's type: `initial` and `read` both follow the type.
  return { ok: true, values: Object.fromEntries(values) as FlagValues<T>, given }
}

/** Returns the settings of a table: values that are absent have their default, those of other tables are left out. */
export function settingsOf<const T extends FlagTable>(table: T, values: Partial<FlagValues<T>> = {}): SettingsOf<T> {
  const given: Readonly<Record<string, Value | undefined>> = values
  const settings = Object.entries(table).map(([name, flag]): [string, Value] => {
    const value = given[name] ?? initial(flag)
    const isUrl = flag.type === 'string' && flag.url === true && typeof value === 'string'
    return [settingName(name, flag), isUrl ? value.replace(/\/$/, '') : value]
  })
  return Object.fromEntries(settings) as SettingsOf<T>
}

function settingName(name: string, { type }: Flag): string {
  const camel = name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return type === 'duration' ? `${camel}Ms` : camel
}

function unknownFlag(name: string, known: readonly string[]): string {
  const meant = closest(name, known)
  return `unknown flag -${name}${meant === null ? '' : `; did you mean -${meant}?`}`
}

function initial(flag: Flag): Value {
  switch (flag.type) {
    case 'string':
      return flag.default ?? ''
    case 'bool':
      return flag.default ?? false
    case 'list':
      return flag.default ?? []
    default:
      return flag.default ?? 0
  }
}

/** Go's spellings of a bool. */
const BOOLS: Readonly<Record<string, boolean>> = Object.freeze({
  ...Object.fromEntries(['1', 't', 'T', 'true', 'TRUE', 'True'].map((text) => [text, true])),
  ...Object.fromEntries(['0', 'f', 'F', 'false', 'FALSE', 'False'].map((text) => [text, false])),
})

function read(flag: Flag, text: string): Value | { fault: string } {
  const got = `, got ${JSON.stringify(text)}`
  switch (flag.type) {
    case 'string':
      if (flag.oneOf !== undefined && !flag.oneOf.includes(text)) {
        return { fault: `must be one of ${flag.oneOf.join(', ')}${got}` }
      }
      return text
    case 'bool':
      return Object.hasOwn(BOOLS, text) ? (BOOLS[text] ?? false) : { fault: `must be true or false${got}` }
    case 'list':
      return text.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()]))
    case 'int': {
      const number = /^[-+]?\d+$/.test(text) ? Number(text) : Number.NaN
      if (!Number.isSafeInteger(number)) return { fault: `must be an integer${got}` }
      return withinRange(flag, number, String) ?? number
    }
    case 'duration': {
      const ms = parseDuration(text)
      if (ms === null) return { fault: `must be a duration such as 15m, 1h30m or 250ms${got}` }
      return withinRange(flag, ms, formatDuration) ?? ms
    }
  }
}

function withinRange(
  { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY }: { min?: number; max?: number },
  value: number,
  print: (value: number) => string,
): { fault: string } | null {
  if (value >= min && value <= max) return null
  const got = `, got ${print(value)}`
  if (max === Number.POSITIVE_INFINITY) return { fault: `must be at least ${print(min)}${got}` }
  if (min === Number.NEGATIVE_INFINITY) return { fault: `must be at most ${print(max)}${got}` }
  return { fault: `must be from ${print(min)} to ${print(max)}${got}` }
}

/** Returns the usage text: grouped, aligned, with the type of each value and the default. Ends with a newline. */
export function usage(table: FlagTable, program: string): string {
  const rows = Object.entries(table).map(([name, flag]) => ({
    group: flag.group ?? '',
    left: `  -${name}${flag.type === 'bool' ? '' : ` ${flag.type}`}`,
    right: describe(flag),
  }))
  const width = Math.max(0, ...rows.map((row) => row.left.length))
  const lines = [`Usage: ${program} [flags]`]
  for (const [group, members] of Map.groupBy(rows, (row) => row.group)) {
    lines.push('', `${group === '' ? 'Flags' : group}:`)
    for (const row of members) lines.push(`${row.left.padEnd(width)}  ${row.right}`)
  }
  return `${lines.join('\n')}\n`
}

function describe(flag: Flag): string {
  const choices = flag.type === 'string' && flag.oneOf !== undefined ? ` One of: ${flag.oneOf.join(', ')}.` : ''
  const preset = printDefault(flag)
  return `${flag.help}${choices}${preset === '' ? '' : ` (default ${preset})`}`
}

function printDefault(flag: Flag): string {
  if (flag.default === undefined || flag.default === '' || flag.default === false) return ''
  if (flag.type === 'duration') return formatDuration(flag.default)
  if (flag.type === 'list') return flag.default.join(',')
  return String(flag.default)
}

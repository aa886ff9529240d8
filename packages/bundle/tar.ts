/** Bytes of a header, and what every entry is padded to. */
const BLOCK = 512
/** Maximum number of zero bytes after the end of an archive: programs pad the last record. */
const MAX_TAIL = 64 * 1024
/** Longest path that one header holds without extensions. */
const MAX_NAME_CHARS = 100

/** A path below a folder: plain segments, none of which begins with a dot, so that it neither leaves the folder nor hides in it. */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_][A-Za-z0-9._-]*){0,3}$/

/** Offsets of header fields (POSIX.1-1988, ustar). */
const field = {
  name: [0, 100],
  size: [124, 136],
  checksum: [148, 156],
  type: [156, 157],
  link: [157, 257],
  magic: [257, 265],
  prefix: [345, 500],
} as const

/** `ustar` as POSIX writes it, and as GNU does. */
const MAGICS: ReadonlySet<string> = new Set(['ustar\x0000', 'ustar  \x00'])

/** One file of an archive. */
export interface Entry {
  readonly name: string
  /** A view of the archive. */
  readonly bytes: Uint8Array
}

/** Returns whether a file of an archive may have this name. */
export function isEntryName(name: string): boolean {
  return name.length <= MAX_NAME_CHARS && NAME.test(name)
}

/**
 * Returns the files of an uncompressed tar archive, in order, or a string that says what is wrong. Accepts at most `maxEntries` regular files with
 * plain names: no links, folders, devices or extended headers, no duplicate name, only zeros after the end.
 */
export function readTar(archive: Buffer, maxEntries: number): readonly Entry[] | string {
  const entries: Entry[] = []
  const names = new Set<string>()
  let at = 0
  for (;;) {
    if (at + BLOCK > archive.length) return 'the archive has no end'
    const header = archive.subarray(at, at + BLOCK)
    at += BLOCK
    if (isZero(header)) break
    if (entries.length === maxEntries) return `the archive has more than ${maxEntries} files`
    const read = readHeader(header)
    if (typeof read === 'string') return read
    const { name, size } = read
    if (names.has(name)) return `the archive has ${name} twice`
    if (size > archive.length - at) return `${name} continues past the end of the archive`
    names.add(name)
    entries.push({ name, bytes: archive.subarray(at, at + size) })
    at += padded(size)
  }
  const tail = archive.subarray(at)
  return tail.length <= MAX_TAIL && isZero(tail) ? entries : 'the archive continues past its end'
}

function readHeader(header: Buffer): { readonly name: string; readonly size: number } | string {
  const text = (part: keyof typeof field) => header.toString('latin1', ...field[part])
  if (!MAGICS.has(text('magic'))) return 'the archive is not a tar archive (ustar)'
  if (octal(text('checksum')) !== checksum(header)) return 'the archive has a header whose checksum is wrong'
  const name = untilNul(text('name'))
  if (!isEntryName(name) || untilNul(text('prefix')) !== '') {
    return `the archive names ${JSON.stringify(name)}: names are letters, digits, ".", "_" and "-", in at most four levels and ${MAX_NAME_CHARS} characters`
  }
  const type = text('type')
  if ((type !== '0' && type !== '\0') || untilNul(text('link')) !== '') return `${name} is not a regular file`
  const size = octal(text('size'))
  return size === null ? `${name} has no size` : { name, size }
}

/** Returns an archive of these files, the same for equal files. Throws on an invalid name. */
export function writeTar(entries: readonly Entry[]): Buffer {
  const blocks = entries.flatMap(({ name, bytes }) => {
    if (!isEntryName(name)) throw new Error(`${JSON.stringify(name)} cannot be the name of a file in a bundle`)
    return [headerOf(name, bytes.length), bytes, Buffer.alloc(padded(bytes.length) - bytes.length)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

function headerOf(name: string, size: number): Buffer {
  const header = Buffer.alloc(BLOCK)
  header.write(name, field.name[0], 'latin1')
  // Mode, owner, group, size, time.
  header.write(
    `0000644\0${'0000000\0'.repeat(2)}${size.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0`,
    100,
    'latin1',
  )
  header.write('0', field.type[0], 'latin1')
  header.write('ustar\x0000', field.magic[0], 'latin1')
  header.write(`${checksum(header).toString(8).padStart(6, '0')}\0 `, field.checksum[0], 'latin1')
  return header
}

/** Sum of the bytes of a header, the checksum itself counted as spaces. */
function checksum(header: Buffer): number {
  const [from, to] = field.checksum
  let sum = (to - from) * 0x20
  for (const [index, byte] of header.entries()) if (index < from || index >= to) sum += byte
  return sum
}

/** Returns null when the text is not an octal number. */
function octal(text: string): number | null {
  const [, digits] = /^ *([0-7]{1,11})[\0 ]*$/.exec(text) ?? []
  return digits === undefined ? null : Number.parseInt(digits, 8)
}

function untilNul(text: string): string {
  const end = text.indexOf('\0')
  return end < 0 ? text : text.slice(0, end)
}

function padded(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0)
}

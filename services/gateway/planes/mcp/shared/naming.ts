import { createHash } from 'node:crypto'

/** The longest tool name that the APIs of models accept. */
export const MAX_TOOL_NAME = 64
/** The longest prefix, so that the name of a tool keeps enough characters. */
const MAX_PREFIX = 32
const PREFIX_DIGITS = 8
/** See `SHORTENED`. */
const TOOL_DIGITS = 10
/** Separates the server's prefix from a URI. */
const URI_START = 'mcp://'
/** Separates a server from a value that was sealed for it. */
const SEAL_MARK = '/'

/** A name or a URI without its prefix. */
export interface Unprefixed {
  readonly prefix: string
  readonly name: string
}

/**
 * Names at the address of all servers. The prefix of a name ends at the first separator, and no prefix has a separator before its end: so no name
 * that a server chooses can begin with the prefix of another one.
 */
export class Naming {
  readonly #separator: string

  constructor(separator: string) {
    this.#separator = separator
  }

  /** Returns the prefix of a server: its name, or a shorter form with a digest if it is long or a separator would end within it. */
  prefixOf(server: string): string {
    const separator = this.#separator
    const isPlain = server.length <= MAX_PREFIX && (server + separator).indexOf(separator) === server.length
    if (isPlain) return server
    const characters = [...server].filter((one) => !separator.includes(one))
    return characters.slice(0, MAX_PREFIX - PREFIX_DIGITS).join('') + digestOf(server, PREFIX_DIGITS)
  }

  /** Returns the name of a tool or prompt. */
  join(prefix: string, name: string): string {
    return prefix + this.#separator + name
  }

  /** Returns the name of a tool, shortened with a digest if it is too long for models. */
  toolName(prefix: string, tool: string): string {
    const whole = this.join(prefix, tool)
    if (whole.length <= MAX_TOOL_NAME) return whole
    const end = `_${digestOf(tool, TOOL_DIGITS)}`
    return whole.slice(0, MAX_TOOL_NAME - end.length).toWellFormed() + end
  }

  /** Returns true for a name that may be a shortened one. */
  isShortened(name: string): boolean {
    return name.length === MAX_TOOL_NAME && SHORTENED.test(name)
  }

  /** Returns null for a name without a separator. */
  split(name: string): Unprefixed | null {
    const at = name.indexOf(this.#separator)
    return at < 1 ? null : { prefix: name.slice(0, at), name: name.slice(at + this.#separator.length) }
  }
}

const SHORTENED = /_[0-9a-f]{10}$/

/** Returns the URI of a server's resource, or of a template. Every URI has a prefix, since any two servers may have the same. */
export function sharedUri(prefix: string, uri: string): string {
  return `${URI_START}${prefix}/${uri}`
}

/** Returns null for a URI without a prefix. */
export function splitUri(uri: string): Unprefixed | null {
  if (!uri.startsWith(URI_START)) return null
  const end = uri.indexOf('/', URI_START.length)
  return end <= URI_START.length ? null : { prefix: uri.slice(URI_START.length, end), name: uri.slice(end + 1) }
}

/** Returns a sealed value with the server for which it was sealed: without it the value could not be opened. */
export function withServer(text: string, server: string): string {
  return server + SEAL_MARK + text
}

/** Returns null for a value of another server. */
export function withoutServer(text: string, server: string): string | null {
  const start = server + SEAL_MARK
  return text.startsWith(start) ? text.slice(start.length) : null
}

/** Returns the server of a sealed value; null: it has none. */
export function serverOfSealed(text: string): string | null {
  const end = text.indexOf(SEAL_MARK)
  return end < 1 ? null : text.slice(0, end)
}

function digestOf(text: string, digits: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, digits)
}

/** A media type (RFC 9110, section 8.3.1). */
export interface MediaType {
  /** In lower case, such as `text/html`. */
  readonly type: string
  /** Null if not given. */
  readonly charset: string | null
}

const TYPE = /^[!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+$/

/** Parses a `Content-Type`. Returns null if it is invalid. */
export function mediaType(header: string | undefined): MediaType | null {
  const [first = '', ...parameters] = (header ?? '').split(';')
  const type = first.trim().toLowerCase()
  if (!TYPE.test(type)) return null
  for (const parameter of parameters) {
    const [name = '', value = ''] = parameter.split('=', 2)
    if (name.trim().toLowerCase() === 'charset') return { type, charset: value.trim().replace(/^"(.*)"$/, '$1') }
  }
  return { type, charset: null }
}

/** Text types, which data-loss prevention, guards and models can read: whole types, and suffixes. */
const TEXT =
  /^(?:text\/.+|application\/(?:.+\+)?(?:json|xml|yaml|x-yaml|x-ndjson|javascript|ecmascript|toml|sql|rtf|xhtml|graphql)|.+\+(?:json|xml|yaml))$/

/** Returns whether a type, or every type that matches a pattern with `*`, is text. */
export function isText(type: string): boolean {
  return TEXT.test(type)
}

/** Returns whether it is HTML, which is converted to text. */
export function isHtml(type: string): boolean {
  return type === 'text/html' || type === 'application/xhtml+xml'
}

/** A media type, parameters apart (RFC 9110, section 8.3.1). */
export interface MediaType {
  /** In lower case, such as `text/html`. */
  readonly type: string
  /** Null: it names none. */
  readonly charset: string | null
}

const TYPE = /^[!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+$/

/** Reads a `Content-Type`; null where it is none. */
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

/** What is text, and so can be read by data-loss prevention, guards and models: whole types, and suffixes of others. */
const TEXT =
  /^(?:text\/.+|application\/(?:.+\+)?(?:json|xml|yaml|x-yaml|x-ndjson|javascript|ecmascript|toml|sql|rtf|xhtml|graphql)|.+\+(?:json|xml|yaml))$/

/** Whether content of a type, or of every type that a pattern with `*` means, is text. */
export function isText(type: string): boolean {
  return TEXT.test(type)
}

/** Whether it is HTML, of which the text is wanted and not the marks. */
export function isHtml(type: string): boolean {
  return type === 'text/html' || type === 'application/xhtml+xml'
}

import assert from 'node:assert/strict'

/** A parsed syslog message (RFC 5424, section 6). */
export interface SyslogMessage {
  readonly facility: number
  readonly severity: number
  readonly timestamp: string
  readonly hostname: string
  readonly appName: string
  readonly procId: string
  readonly msgId: string
  /** Parameters of the structured data by element name, or null for `-`. */
  readonly data: { readonly id: string; readonly params: Readonly<Record<string, string>> } | null
  readonly message: string
}

const PRINTABLE = '[\\x21-\\x7e]'
const SD_NAME = '[!#-<>-\\\\^-~]{1,32}'
const VALUE = '(?:[^"\\\\\\]]|\\\\["\\\\\\]])*'
const HEAD = new RegExp(
  `^<(0|[1-9]\\d{0,2})>1 (\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?(?:Z|[+-]\\d\\d:\\d\\d)) (${PRINTABLE}{1,255}) (${PRINTABLE}{1,48}) (${PRINTABLE}{1,128}) (${PRINTABLE}{1,32}) `,
)
const ELEMENT = new RegExp(`^\\[(${SD_NAME})((?: ${SD_NAME}="${VALUE}")*)\\](?: |$)`)
const PARAM = new RegExp(` (${SD_NAME})="(${VALUE})"`, 'g')

/** Parses one message; throws AssertionError for invalid ones. */
export function parseSyslog(text: string): SyslogMessage {
  const head = HEAD.exec(text)
  assert.ok(head !== null, `no head of RFC 5424: ${text.slice(0, 80)}`)
  const [all = '', priority, timestamp = '', hostname = '', appName = '', procId = '', msgId = ''] = head
  assert.ok(Number(priority) <= 191)
  assert.ok(!Number.isNaN(Date.parse(timestamp)))
  const rest = text.slice(all.length)
  const fields = {
    facility: Number(priority) >> 3,
    severity: Number(priority) & 7,
    timestamp,
    hostname,
    appName,
    procId,
    msgId,
  }
  if (rest.startsWith('- ')) return { ...fields, data: null, message: rest.slice(2) }
  const element = ELEMENT.exec(rest)
  assert.ok(element !== null, `no structured data: ${rest.slice(0, 80)}`)
  const [whole = '', id = '', params = ''] = element
  const pairs = Array.from(params.matchAll(PARAM), ([, name = '', value = '']) => [
    name,
    value.replace(/\\(["\\\]])/g, '$1'),
  ])
  return { ...fields, data: { id, params: Object.fromEntries(pairs) }, message: rest.slice(whole.length) }
}

/** Splits a stream of length-prefixed messages (RFC 6587, section 3.4.1); `rest` is an incomplete one. */
export function parseFrames(bytes: Buffer): { readonly messages: readonly string[]; readonly rest: Buffer } {
  const messages: string[] = []
  let at = 0
  for (;;) {
    const space = bytes.indexOf(0x20, at)
    if (space === -1) break
    const digits = bytes.toString('latin1', at, space)
    assert.match(digits, /^[1-9]\d*$/, 'a frame begins with its length')
    const end = space + 1 + Number(digits)
    if (end > bytes.length) break
    messages.push(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(space + 1, end)))
    at = end
  }
  return { messages, rest: bytes.subarray(at) }
}

import { type AuditRecord, type Format, type Level, levelOf, textOf } from './words.ts'

/** RFC 5424, table 2. */
const SEVERITIES: Readonly<Record<Level, number>> = { information: 6, warning: 4, error: 3 }
const APP_NAME = 'plat-gateway'
/** HOSTNAME has at most so many characters, and MSGID (RFC 5424, section 6). */
const MAX_HOSTNAME = 255
const NIL = '-'

export interface Rfc5424Options {
  readonly facility: number
  /** Name of the structured data with number and hash; null: there is none. */
  readonly sdId: string | null
}

/**
 * A syslog message (RFC 5424) around what `message` writes. It begins with no byte order mark: the message is of any octets (MSG-ANY),
 * so that readers of JSON find JSON.
 */
export function rfc5424({ facility, sdId }: Rfc5424Options, message: Format): Format {
  return (record) => {
    const priority = facility * 8 + SEVERITIES[levelOf(record)]
    const at = textOf(record, 'at') ?? NIL
    const host = token(textOf(record, 'replica') ?? NIL)
    const kind = token(textOf(record, 'kind') ?? NIL)
    return `<${priority}>1 ${at} ${host} ${APP_NAME} - ${kind} ${structured(sdId, record)} ${message(record)}`
  }
}

/** Both values are of letters and digits: nothing in them is to be escaped. */
function structured(sdId: string | null, { seq, hash }: AuditRecord): string {
  return sdId === null ? NIL : `[${sdId} seq="${seq}" hash="${hash}"]`
}

/** Printable US-ASCII without spaces. */
function token(text: string): string {
  return text.replace(/[^\x21-\x7e]/g, '_').slice(0, MAX_HOSTNAME)
}

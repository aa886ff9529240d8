import { type AuditRecord, type Format, type Level, levelOf, textOf } from './words.ts'

/** RFC 5424, table 2. */
const SEVERITIES: Readonly<Record<Level, number>> = { information: 6, warning: 4, error: 3 }
const APP_NAME = 'plat-gateway'
/** Maximum length of HOSTNAME and of MSGID, in characters (RFC 5424, section 6). */
const MAX_HOSTNAME = 255
const NIL = '-'

export interface Rfc5424Options {
  readonly facility: number
  /** Name of the structured data with number and hash, or null for none. */
  readonly sdId: string | null
}

/**
 * Wraps a format in syslog messages (RFC 5424). They have no byte order mark: the message is of any octets (MSG-ANY),
 * so that JSON parsers can read it.
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

/** Both values contain letters and digits only and need no escaping. */
function structured(sdId: string | null, { seq, hash }: AuditRecord): string {
  return sdId === null ? NIL : `[${sdId} seq="${seq}" hash="${hash}"]`
}

/** Returns printable US-ASCII without spaces. */
function token(text: string): string {
  return text.replace(/[^\x21-\x7e]/g, '_').slice(0, MAX_HOSTNAME)
}

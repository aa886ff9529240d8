import { cef } from './cef.ts'
import { ocsf } from './ocsf.ts'
import { type Rfc5424Options, rfc5424 } from './rfc5424.ts'
import type { AuditRecord, Format } from './words.ts'

/** Values of `auditSinks[].format` (docs/spec/gateway.md). */
export type FormatName = 'json' | 'rfc5424-json' | 'cef' | 'ocsf'

/** The ledger's line as it is: whoever has all of them can verify the chain. */
function json(record: AuditRecord): string {
  return record.text
}

/** How a format writes a record. */
export function formatOf(name: FormatName, syslog: Rfc5424Options): Format {
  switch (name) {
    case 'json':
      return json
    case 'cef':
      return cef
    case 'ocsf':
      return ocsf
    case 'rfc5424-json':
      return rfc5424(syslog, json)
  }
}

/** The same as messages of syslog: every format stands behind an RFC 5424 head, and `rfc5424-json` has structured data in it. */
export function syslogFormatOf(name: FormatName, { facility, sdId }: Rfc5424Options): Format {
  if (name === 'rfc5424-json') return rfc5424({ facility, sdId }, json)
  return rfc5424({ facility, sdId: null }, formatOf(name, { facility, sdId }))
}

/** Whether it writes JSON. */
export function isJson(name: FormatName): boolean {
  return name === 'json' || name === 'ocsf'
}

import { cef } from './cef.ts'
import { ocsf } from './ocsf.ts'
import { type Rfc5424Options, rfc5424 } from './rfc5424.ts'
import type { AuditRecord, Format } from './words.ts'

/** Values of `auditSinks[].format` (docs/spec/gateway.md). */
export type FormatName = 'json' | 'rfc5424-json' | 'cef' | 'ocsf'

/** The ledger line unchanged, so that the complete set verifies as a chain. */
function json(record: AuditRecord): string {
  return record.text
}

/** Returns the writer of a format. */
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

/** Formats for syslog: each with an RFC 5424 header, `rfc5424-json` with structured data. */
export function syslogFormatOf(name: FormatName, { facility, sdId }: Rfc5424Options): Format {
  if (name === 'rfc5424-json') return rfc5424({ facility, sdId }, json)
  return rfc5424({ facility, sdId: null }, formatOf(name, { facility, sdId }))
}

export function isJson(name: FormatName): boolean {
  return name === 'json' || name === 'ocsf'
}

import { type AuditRecord, type Level, levelOf, textOf, titleOf } from './words.ts'

const SEVERITIES: Readonly<Record<Level, string>> = {
  information: 'INFORMATIONAL',
  warning: 'MEDIUM',
  error: 'HIGH',
}

/**
 * A JSON event of Google's Unified Data Model. All are `GENERIC_EVENT`, since UDM has no types for agents. `additional` holds the whole
 * record.
 */
export function udm(record: AuditRecord): string {
  const of = (member: string) => textOf(record, member) ?? undefined
  const user = of('user') ?? of('by')
  const { action } = record.rec
  return JSON.stringify({
    metadata: {
      eventTimestamp: of('at'),
      eventType: 'GENERIC_EVENT',
      vendorName: 'plat',
      productName: 'plat-gateway',
      productEventType: of('kind'),
      productLogId: record.hash,
      description: titleOf(record),
    },
    // An event must name at least one party.
    principal: {
      application: of('agent') ?? 'plat-gateway',
      namespace: of('namespace'),
      user: user === undefined ? undefined : { userid: user },
      resource: of('session') === undefined ? undefined : { productObjectId: of('session') },
    },
    target: of('server') === undefined ? undefined : { application: of('server'), resource: { name: of('tool') } },
    observer: { hostname: of('replica') },
    securityResult: [
      {
        action: action === 'deny' ? ['BLOCK'] : action === 'allow' ? ['ALLOW'] : undefined,
        severity: SEVERITIES[levelOf(record)],
        ruleName: of('rule') ?? of('policy'),
        summary: of('reason'),
      },
    ],
    additional: { seq: record.seq, hash: record.hash, rec: record.rec },
  })
}

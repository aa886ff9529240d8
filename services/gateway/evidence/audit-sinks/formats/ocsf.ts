import type { JsonObject } from '@plat/core'
import { type AuditRecord, type Level, levelOf, numberOf, textOf, timeOf, titleOf } from './words.ts'

/** Version of the Open Cybersecurity Schema Framework that defines these classes. */
export const OCSF_VERSION = '1.6.0'

/** Informational, medium and high. */
const SEVERITIES: Readonly<Record<Level, number>> = { information: 1, warning: 3, error: 4 }

const APPLICATION = { category_uid: 6, api: 6003, lifecycle: 6002 } as const
const FINDINGS = { category_uid: 2, detection: 2004 } as const
const READ = 2
const CREATED = 1
const OTHER = 99
const PRODUCT = { name: 'plat-gateway', vendor_name: 'plat' } as const

/** Kinds of records about requests. */
const REQUESTS: ReadonlySet<unknown> = new Set([
  'intent',
  'decision',
  'outcome',
  'message',
  'approval',
  'revocation',
  'admin',
])
/** Kinds of records that need attention. */
const FINDS: ReadonlySet<unknown> = new Set(['alert', 'gap', 'recovered'])

/**
 * An OCSF event: API Activity (6003) for requests, Detection Finding (2004) for alerts and gaps of the ledger,
 * Application Lifecycle (6002) for records of the ledger about itself. `raw_data` is the ledger line.
 */
export function ocsf(record: AuditRecord): string {
  const { kind } = record.rec
  const event = REQUESTS.has(kind) ? apiActivity(record) : FINDS.has(kind) ? finding(record) : lifecycle(record)
  return JSON.stringify({ ...common(record), ...event, raw_data: record.text })
}

function common(record: AuditRecord): JsonObject {
  return {
    time: timeOf(record),
    severity_id: SEVERITIES[levelOf(record)],
    message: titleOf(record),
    metadata: {
      version: OCSF_VERSION,
      product: PRODUCT,
      uid: record.hash,
      sequence: record.seq,
      event_code: textOf(record, 'kind') ?? undefined,
      log_name: 'audit',
      log_provider: textOf(record, 'replica') ?? undefined,
      original_time: textOf(record, 'at') ?? undefined,
      tenant_uid: textOf(record, 'tenant') ?? undefined,
      correlation_uid: textOf(record, 'call') ?? undefined,
    },
  }
}

function classed(category: number, uid: number, activity: number, name: string): JsonObject {
  return {
    category_uid: category,
    class_uid: uid,
    activity_id: activity,
    activity_name: name,
    type_uid: uid * 100 + activity,
  }
}

function apiActivity(record: AuditRecord): JsonObject {
  const operation = operationOf(record)
  const isRead = operation.endsWith('.list') || operation.endsWith('.get') || operation.endsWith('.info')
  const { category_uid, api } = APPLICATION
  const [server, tool] = [textOf(record, 'server'), textOf(record, 'tool')]
  const resource = tool ?? server
  return {
    ...classed(category_uid, api, isRead ? READ : OTHER, isRead ? 'Read' : operation),
    ...statusOf(record),
    actor: actorOf(record),
    api: {
      operation,
      service: server === null ? undefined : { name: server },
      request: { uid: textOf(record, 'call') ?? record.hash },
      response: responseOf(record),
    },
    // Callers are agents; records identify them and contain no client address.
    src_endpoint: { name: textOf(record, 'agent') ?? textOf(record, 'by') ?? PRODUCT.name },
    dst_endpoint: server === null ? undefined : { svc_name: server },
    resources:
      resource === null ? undefined : [{ name: resource, namespace: textOf(record, 'namespace') ?? undefined }],
  }
}

function operationOf(record: AuditRecord): string {
  const event = textOf(record, 'event') ?? textOf(record, 'action')
  const kind = textOf(record, 'kind') ?? 'record'
  return textOf(record, 'op') ?? (event === null ? kind : `${kind}.${event}`)
}

/** A session or an administrator; an actor needs at least one of these members. */
function actorOf(record: AuditRecord): JsonObject {
  const user = textOf(record, 'user') ?? textOf(record, 'by')
  const session = textOf(record, 'session')
  return {
    app_name: textOf(record, 'agent') ?? PRODUCT.name,
    session: session === null ? undefined : { uid: session },
    user: user === null ? undefined : { name: user },
  }
}

/** Unknown, success or failure. */
function statusOf(record: AuditRecord): JsonObject {
  const result = textOf(record, 'result')
  const failed = record.rec.action === 'deny' || (result !== null && result !== 'completed' && result !== 'suspended')
  const known = failed || result !== null
  return {
    status_id: failed ? 2 : known ? 1 : 0,
    status_code: textOf(record, 'code') ?? undefined,
    status_detail: textOf(record, 'reason') ?? undefined,
  }
}

function responseOf(record: AuditRecord): JsonObject | undefined {
  const code = numberOf(record, 'status')
  const error = textOf(record, 'code')
  return code === null && error === null ? undefined : { code: code ?? undefined, error: error ?? undefined }
}

function finding(record: AuditRecord): JsonObject {
  const { category_uid, detection } = FINDINGS
  return {
    ...classed(category_uid, detection, CREATED, 'Create'),
    status_id: 1,
    finding_info: {
      uid: record.hash,
      title: textOf(record, 'alert') ?? textOf(record, 'kind') ?? 'alert',
      created_time: timeOf(record),
    },
  }
}

function lifecycle(record: AuditRecord): JsonObject {
  const { category_uid, lifecycle: uid } = APPLICATION
  return { ...classed(category_uid, uid, OTHER, textOf(record, 'kind') ?? 'record'), app: PRODUCT }
}

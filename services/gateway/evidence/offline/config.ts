import { defineBlock, isUnset, key, type RuleOf, requires, requiresTop } from '@plat/config'
import Type, { type Static } from 'typebox'

const isOn = ({ enabled }: Record<string, unknown>) => enabled === true

const schema = Type.Object({
  enabled: key.flag('Spool signed segments; needs `auditCheckpointKey`.'),
  edgeId: key.text('Letters, digits, `.`, `_`, `-`; required when enabled.', '', '^[A-Za-z0-9._-]*$'),
  spoolDir: key.text('Default `<auditPath>.spool`.'),
  spoolMaxBytes: key.whole('Bytes of the spool.', 1024 ** 3, 1),
  fullPolicy: Type.Enum(['failClosed', 'dropOldestForwarded'], {
    default: 'failClosed',
    description: 'Policy for a full spool.',
  }),
  segmentMaxRecords: key.whole('Records of one segment.', 1000, 1),
  sealIntervalSeconds: key.seconds('Longest time until a segment is sealed.', 60),
  collectorKeyFiles: Type.Array(Type.String({ minLength: 1, file: 'error' }), {
    default: [],
    description: 'Keys of collectors whose receipts are valid.',
  }),
  forward: key.group(
    {
      url: key.url('Admin API of the collector.'),
      tokenFile: key.file('Token for it.'),
      caFile: key.file('Its authorities.'),
      intervalSeconds: key.seconds('How often.', 10),
      maxBackoffSeconds: key.seconds('Longest pause after failures.', 300),
      timeoutSeconds: key.seconds('Time for one segment.', 30),
      jurisdiction: key.jurisdiction('Where the collector runs; checked against the SovereigntyPolicy.'),
    },
    'Forwarding.',
  ),
  receiptDropDir: key.text('Scanned for receipts.'),
  disconnectedAfterSeconds: key.seconds('Time without a receipt after which the edge is disconnected.', 300),
  maxRevocationStalenessSeconds: key.whole('Oldest revocation list; 0 off.', 0),
  highRiskTools: key.texts('`server/tool` globs; default every tool.'),
  approvals: Type.Enum(['deny', 'localApprovers'], {
    default: 'deny',
    description: 'Approvals while disconnected.',
  }),
  localApprovers: key.texts('`user:<name>` or groups.'),
})

/** Without a key no receipt is valid: the edge would always be disconnected, and its spool would only fill. */
const receiptsCount: RuleOf<typeof schema> = ({ enabled, collectorKeyFiles, receiptDropDir, forward }) => {
  const expectsReceipts = receiptDropDir !== '' || !isUnset(forward?.url)
  if (enabled !== true || !expectsReceipts || !isUnset(collectorKeyFiles)) return []
  const message = 'is empty: no receipt is valid, so this edge is always disconnected and its spool is never freed'
  return [{ path: 'offline.collectorKeyFiles', message, severity: 'warning' }]
}

/** Approvers of a disconnected edge must be named. */
const approversAreNamed: RuleOf<typeof schema> = ({ enabled, approvals, localApprovers }) => {
  if (enabled !== true || approvals !== 'localApprovers' || !isUnset(localApprovers)) return []
  const message = 'is empty: no approval is possible while this edge is disconnected'
  return [{ path: 'offline.localApprovers', message, severity: 'warning' }]
}

/** `offline` (docs/spec/gateway.md): an edge that spools signed ledger segments. */
export const offlineBlock = defineBlock({
  path: 'offline',
  feature: 'offline',
  schema,
  rules: [
    requires('offline', ['edgeId'], isOn, 'with offline.enabled'),
    requiresTop('auditCheckpointKey', isOn, 'with offline.enabled'),
    receiptsCount,
    approversAreNamed,
  ],
})

export type OfflineConfig = Readonly<Static<typeof offlineBlock.schema>>

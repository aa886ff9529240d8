import { type ConfigBlock, key, requires, requiresTop } from '@plat/config'
import Type from 'typebox'

const isOn = ({ enabled }: Record<string, unknown>) => enabled === true

/** `offline` (document 3): an edge that spools signed ledger segments. */
export const offlineBlock = {
  path: 'offline',
  feature: 'offline',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Spool signed segments; needs `auditCheckpointKey`.'),
    edgeId: key.text('Letters, digits, `.`, `_`, `-`; required when enabled.', '', '^[A-Za-z0-9._-]*$'),
    spoolDir: key.text('Default `<auditPath>.spool`.'),
    spoolMaxBytes: key.whole('Bytes of the spool.', 1024 ** 3, 1),
    fullPolicy: key.choice(['failClosed', 'dropOldestForwarded'], 'failClosed', 'What a full spool does.'),
    segmentMaxRecords: key.whole('Records of one segment.', 1000, 1),
    sealIntervalSeconds: key.seconds('Longest time until a segment is sealed.', 60),
    collectorKeyFiles: key.texts('Keys of collectors whose receipts count.'),
    forward: key.group(
      {
        url: key.url('The collector.'),
        tokenFile: key.file('Token for it.'),
        caFile: key.file('Its authorities.'),
        intervalSeconds: key.seconds('How often.', 10),
        maxBackoffSeconds: key.seconds('Longest pause after failures.', 300),
        timeoutSeconds: key.seconds('Time for one segment.', 30),
      },
      'Forwarding.',
    ),
    receiptDropDir: key.text('Scanned for receipts.'),
    disconnectedAfterSeconds: key.seconds('Silence after which the edge is on its own.', 300),
    maxRevocationStalenessSeconds: key.whole('Oldest revocation list; 0 off.', 0),
    highRiskTools: key.texts('`server/tool` globs; default every tool.'),
    approvals: key.choice(['deny', 'localApprovers'], 'deny', 'Who decides while disconnected.'),
    localApprovers: key.texts('`user:<name>` or groups.'),
  }),
  rules: [
    requires('offline', ['edgeId'], isOn, 'with offline.enabled'),
    requiresTop('auditCheckpointKey', isOn, 'with offline.enabled'),
  ],
} satisfies ConfigBlock

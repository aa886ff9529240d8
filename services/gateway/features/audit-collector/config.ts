import { type ConfigBlock, key, requiresTop } from '@plat/config'
import Type from 'typebox'

/** `auditCollector` (document 3): takes segments of edges. */
export const auditCollectorBlock = {
  path: 'auditCollector',
  feature: 'audit-collector',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Collect segments of edges; needs `auditCheckpointKey`.'),
    id: key.text('Default the host name.'),
    dir: key.text('Default `<auditPath>.edges`.'),
    edges: key.groups(
      {
        id: key.needed('`offline.edgeId` of the edge.'),
        publicKeyFiles: key.texts('Keys that its segments are signed with.'),
      },
      'Edges that may forward.',
    ),
    dropDir: key.text('Scanned for segments.'),
    pollSeconds: key.seconds('How often.', 30),
    maxSegmentBytes: key.whole('Bytes of one segment.', 64 * 1024 * 1024, 1),
  }),
  rules: [requiresTop('auditCheckpointKey', ({ enabled }) => enabled === true, 'with auditCollector.enabled')],
} satisfies ConfigBlock

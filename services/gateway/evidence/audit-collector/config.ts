import { defineBlock, key, requiresTop, uniqueNames } from '@plat/config'
import Type, { type Static } from 'typebox'

/** `auditCollector` (docs/spec/gateway.md): accepts segments of edges. */
export const auditCollectorBlock = defineBlock({
  path: 'auditCollector',
  feature: 'audit-collector',
  schema: Type.Object({
    enabled: key.flag('Collect segments of edges; needs `auditCheckpointKey`.'),
    id: key.text('Default the host name.'),
    dir: key.text('Default `<auditPath>.edges`.'),
    edges: key.groups(
      {
        id: key.needed('`offline.edgeId` of the edge; also the name of its folder.', '^(?!\\.{1,2}$)[A-Za-z0-9._-]+$'),
        publicKeyFiles: Type.Array(Type.String({ minLength: 1, file: 'error' }), {
          minItems: 1,
          description: 'Keys that its segments are signed with.',
        }),
      },
      'Edges that may forward.',
    ),
    dropDir: key.text('Scanned for segments.'),
    pollSeconds: key.seconds('How often.', 30),
    maxSegmentBytes: key.whole('Bytes of one segment.', 64 * 1024 * 1024, 1),
  }),
  rules: [
    requiresTop('auditCheckpointKey', ({ enabled }) => enabled === true, 'with auditCollector.enabled'),
    uniqueNames('auditCollector.edges', 'id'),
  ],
})

export type AuditCollectorConfig = Readonly<Static<typeof auditCollectorBlock.schema>>

import { defineBlock, key } from '@plat/config'
import Type, { type Static } from 'typebox'

/** `pinReports`: the state of tool pins as annotations of MCPServers. */
export const pinReportsBlock = defineBlock({
  path: 'pinReports',
  feature: 'pinReports',
  schema: Type.Object({
    enabled: key.flag(
      'Report the tools of servers in annotations of their MCPServers, for `status` and the condition `Pinned`.',
    ),
    intervalSeconds: key.seconds('How often changes are reported.', 30),
    apiServer: key.url('Address of the cluster API; in-cluster when empty.'),
    tokenFile: key.file('Token for it; in-cluster when empty.'),
    caFile: key.file('Its authorities; in-cluster when empty.'),
  }),
})

export type PinReportsConfig = Readonly<Static<typeof pinReportsBlock.schema>>

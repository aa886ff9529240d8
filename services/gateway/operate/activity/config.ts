import { defineBlock, key } from '@plat/config'
import Type, { type Static } from 'typebox'

/** `activity` (docs/spec/gateway.md): last-activity annotations of sessions. */
export const activityBlock = defineBlock({
  path: 'activity',
  feature: 'activity',
  schema: Type.Object({
    enabled: key.flag('Write last-activity annotations (idle suspend).'),
    intervalSeconds: key.seconds('Throttle per session.', 60),
    apiServer: key.url('Address of the cluster API; in-cluster when empty.'),
    tokenFile: key.file('Token for it; in-cluster when empty.'),
    caFile: key.file('Its authorities; in-cluster when empty.'),
  }),
})

export type ActivityConfig = Readonly<Static<typeof activityBlock.schema>>

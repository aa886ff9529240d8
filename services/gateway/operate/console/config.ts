import { defineBlock, key } from '@plat/config'
import { isLoopbackAddress, parseAddress } from '@plat/http'
import Type, { type Static } from 'typebox'

/** Default life of a session, in seconds: a working day. */
const SESSION_SECONDS = 28_800
const IDLE_SECONDS = 1_800

const schema = Type.Object({
  enabled: Type.Optional(
    Type.Boolean({
      description:
        'Serves the console at `/console/` where the admin API is; default true if `adminListen` is set or `listen` is a loopback address.',
    }),
  ),
  clientID: key.text('Client at `adminAuth.oidc.issuer` for logins of the console; default `adminAuth.oidc.clientID`.'),
  clientSecretFile: key.file('Secret of this client; empty for a public client.'),
  sessionSeconds: key.seconds('How long a login of the console lasts.', SESSION_SECONDS, 60),
  idleSeconds: key.seconds('A login of the console ends when it is unused for this long.', IDLE_SECONDS, 60),
})

/** `console` (docs/console.md): the console of people, in a browser. */
export const consoleBlock = defineBlock({ path: 'console', feature: 'console', schema })

export type ConsoleConfig = Readonly<Static<typeof consoleBlock.schema>>

/** Whether the console is on: by default not on a listener that agents reach from other machines. */
export function isConsoleOn(config: {
  readonly console: Pick<ConsoleConfig, 'enabled'>
  readonly adminListen: string
  readonly listen: string
}): boolean {
  const { console: block, adminListen, listen } = config
  const host = parseAddress(listen)?.host ?? ''
  return block.enabled ?? (adminListen !== '' || host === 'localhost' || isLoopbackAddress(host))
}

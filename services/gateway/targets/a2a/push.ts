import { glob } from '@plat/core'
import { createAddressCheck } from '@plat/http'
import { type Denial, deny } from '../../call/index.ts'

/** A2A "push notifications are not supported" and JSON-RPC "invalid params". */
const NOT_SUPPORTED = -32003
const INVALID_PARAMS = -32602

/** Returns why a push notification must not go to a URL, or null. */
export type PushRule = (url: string) => Denial | null

/**
 * docs/spec/gateway.md, `pushNotificationHosts`: globs for the host of an https URL, with its port unless 443. The agent calls it, not
 * the gateway, so internal addresses are refused here.
 */
export function createPushRule(hosts: readonly string[]): PushRule {
  const allowed = hosts.map((host) => glob(host.toLowerCase()))
  const isPublic = createAddressCheck([])
  return (text) => {
    if (allowed.length === 0)
      return deny('forbidden', 'push notifications are refused: a2a.pushNotificationHosts of the gateway is empty', {
        data: { rpc: NOT_SUPPORTED },
      })
    const url = URL.parse(text)
    if (url === null || url.protocol !== 'https:' || url.username !== '' || url.password !== '')
      return deny('invalid_request', 'the URL for push notifications must be an https URL without credentials', {
        data: { rpc: INVALID_PARAMS },
      })
    const address = addressIn(url.hostname)
    const mayGo = allowed.some((matches) => matches(url.host)) && (address === null || isPublic(address, 'public'))
    return mayGo ? null : deny('forbidden', 'a2a.pushNotificationHosts of the gateway does not allow this host')
  }
}

/** A host name cannot end in a number (WHATWG URL, "ends in a number"): the parser has normalized such addresses. */
function addressIn(hostname: string): string | null {
  if (hostname.startsWith('[')) return hostname.slice(1, -1)
  return /(?:^|\.)\d+$/.test(hostname) ? hostname : null
}

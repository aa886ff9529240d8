import { addressOf } from './address.ts'
import type { ListedServer } from './parts.ts'
import type { ServerView } from './view.ts'

export function serverView(
  { upstream, namespace, sharedWith, isImplicit }: ListedServer,
  { sees, unreachable }: { readonly sees: (namespace: string) => boolean; readonly unreachable: string | null },
): ServerView {
  const { key, url, stdio, trust, dataClass, jurisdiction, protocolVersions, auth, timeoutSeconds, dlpProfile, pins } =
    upstream
  const ofGateway = upstream.builtin === null || url !== '' ? 'static' : 'builtin'
  return {
    id: key,
    kind: namespace === null ? ofGateway : isImplicit ? 'implicit' : 'server',
    namespace,
    sharedWith: sharedWith.filter(sees),
    url: url === '' ? null : addressOf(url),
    stdio,
    trust,
    dataClass,
    jurisdiction,
    protocolVersions: protocolVersions === null ? null : [...protocolVersions],
    auth: auth.type,
    timeoutSeconds,
    dlpProfile,
    pins: pins?.mode ?? null,
    unreachable,
  }
}

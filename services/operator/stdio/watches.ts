import type { Members } from '@plat/kubernetes'
import type { OperatorFlags } from '../flags.ts'
import { Objects, type ObjectsOptions } from '../kube/objects.ts'
import { STDIO_LABEL } from './objects.ts'
import { type StdioWatches, stdioCollection, type WatchedKind } from './servers.ts'

/** Watches the objects of stdio servers, in the namespaces that the operator watches. */
export function stdioWatchesOf(
  {
    flags,
    ...parts
  }: Pick<ObjectsOptions, 'api' | 'clock' | 'ids' | 'log'> & {
    readonly flags: Pick<OperatorFlags, 'watch-namespaces'>
  },
  onChange: (objects: readonly Members[]) => void,
): StdioWatches {
  const { api, clock, ids, log } = parts
  const scopes = flags['watch-namespaces']
  const follow = (kind: WatchedKind) =>
    new Objects({
      ...{ api, clock, ids, log, onChange, labelSelector: STDIO_LABEL },
      paths: (scopes.length === 0 ? [''] : scopes).map((scope) => stdioCollection(kind, scope)),
      onServed() {},
    })
  return { Deployment: follow('Deployment'), Service: follow('Service'), NetworkPolicy: follow('NetworkPolicy') }
}

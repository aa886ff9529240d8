import { reasonOf } from '@plat/core'
import { type ApiParts, ClusterApi } from '../kubernetes/cluster-api.ts'
import { clusterSettings } from '../proof/checks.ts'
import type { ProofFlagValues } from '../proof/flags.ts'

/** The cluster whose pods are bootstrapped. */
export interface Cluster {
  readonly api: ClusterApi
  /** Isolation by runtime class. */
  readonly isolation: ReadonlyMap<string, string>
}

/** The cluster that the flags name. Rejects with one line when the broker has no credentials for one. */
export async function openCluster(flags: ProofFlagValues, parts: ApiParts): Promise<Cluster> {
  const { isolation, ...settings } = clusterSettings(flags)
  const api = new ClusterApi(settings, parts)
  try {
    await api.requireFiles()
  } catch (error) {
    const why = reasonOf(error)
    throw new Error(`-bootstrap-listen: needs a cluster, see -kubernetes-token-file and -kubernetes-ca-file: ${why}`)
  }
  return { api, isolation }
}

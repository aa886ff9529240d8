import { getCACertificates } from 'node:tls'

/** The roots that Node trusts by itself, and the bundle beside them (docs/spec/crds.md, `caBundleRef`; docs/spec/gateway.md, `upstreamCAFile`). */
export function rootsWith(caPEM: string): string[] {
  return [...getCACertificates('default'), caPEM]
}

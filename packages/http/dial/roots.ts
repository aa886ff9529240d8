import { getCACertificates } from 'node:tls'

/** Returns Node's default roots and the bundle (docs/spec/crds.md, `caBundleRef`; docs/spec/gateway.md, `upstreamCAFile`). */
export function rootsWith(caPEM: string): string[] {
  return [...getCACertificates('default'), caPEM]
}

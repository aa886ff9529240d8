import { getCACertificates } from 'node:tls'

/** The roots that Node trusts by itself, and the bundle beside them (document 2, `caBundleRef`; document 3, `upstreamCAFile`). */
export function rootsWith(caPEM: string): string[] {
  return [...getCACertificates('default'), caPEM]
}

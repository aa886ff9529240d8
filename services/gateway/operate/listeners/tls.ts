import type { TlsOptions } from '@plat/http'

/** docs/spec/gateway.md: block `tls`. */
export interface TlsConfig {
  readonly certFile: string
  readonly keyFile: string
  readonly clientCAFile: string
  readonly svidMode: 'off' | 'optional' | 'required'
  readonly reloadSeconds: number
}

/** TLS options of the main and the admin listener; empty for plain HTTP. Only the main one requests client certificates. */
export function tlsOf(config: TlsConfig): { main: { tls?: TlsOptions }; admin: { tls?: TlsOptions } } {
  const { certFile, keyFile, clientCAFile, svidMode, reloadSeconds } = config
  if (certFile === '') return { main: {}, admin: {} }
  const files = { certFile, keyFile, reloadMs: reloadSeconds * 1000 }
  const admin: TlsOptions = { ...files, clientCertificates: 'none' }
  const main: TlsOptions = svidMode === 'off' ? admin : { ...files, clientCertificates: 'requested', clientCAFile }
  return { main: { tls: main }, admin: { tls: admin } }
}

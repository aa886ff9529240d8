import type { TlsOptions } from '@plat/http'
import type { Static } from 'typebox'
import type { tlsBlock } from './config.ts'

type TlsConfig = Readonly<Static<typeof tlsBlock.schema>>

/** TLS options of the main and the admin listener; empty for plain HTTP. Only the main one requests client certificates. */
export function tlsOf(config: TlsConfig): { main: { tls?: TlsOptions }; admin: { tls?: TlsOptions } } {
  const { certFile, keyFile, clientCAFile, svidMode, reloadSeconds } = config
  if (certFile === '') return { main: {}, admin: {} }
  const files = { certFile, keyFile, reloadMs: reloadSeconds * 1000 }
  const admin: TlsOptions = { ...files, clientCertificates: 'none' }
  const main: TlsOptions = svidMode === 'off' ? admin : { ...files, clientCertificates: 'requested', clientCAFile }
  return { main: { tls: main }, admin: { tls: admin } }
}

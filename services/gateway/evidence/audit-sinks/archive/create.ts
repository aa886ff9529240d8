import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import { Material } from '../material.ts'
import type { Clouds } from '../receivers/receivers.ts'
import type { Archive } from './archive.ts'
import { fileArchive } from './file.ts'
import { s3Archive } from './s3.ts'

export type { Archive } from './archive.ts'

/** Where copies of segments go; the part of `auditRetention` about it. */
export interface ArchiveConfig {
  readonly archive: 'none' | 'delete' | 'file' | 's3'
  readonly path: string
  readonly url: string
  readonly region: string
  readonly caFile: string
  readonly awsCredentialsDir: string
  readonly timeoutSeconds: number
  readonly jurisdiction: string
}

export interface ArchiveParts {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clouds: Pick<Clouds, 'aws'>
  readonly clock: Clock
}

/** Returns the archive of `auditRetention`, or null if it has none. */
export function createArchive(config: ArchiveConfig, { dialer, clouds, clock }: ArchiveParts): Archive | null {
  if (config.archive === 'file') return fileArchive(config.path)
  if (config.archive !== 's3') return null
  const { caFile, awsCredentialsDir } = config
  const unset = { certFile: '', keyFile: '', serverName: '', tokenFile: '', headersFile: '' }
  const material = new Material({ ...unset, caFile, awsCredentialsDir })
  const credentials = () => (awsCredentialsDir === '' ? clouds.aws() : material.aws())
  return s3Archive({ config, dialer, material, credentials, clock })
}

import type { Clock } from '@plat/core'
import type { AwsCredentials, Dialer } from '@plat/http'
import type { SinkConfig } from '../config.ts'
import { Material } from '../material.ts'
import { chronicleReceiver } from './chronicle.ts'
import { cloudWatchReceiver } from './cloudwatch.ts'
import { httpReceiver } from './http.ts'
import { jsonlReceiver } from './jsonl.ts'
import type { BearerSource } from './post.ts'
import type { Receiver } from './receiver.ts'
import { sentinelReceiver } from './sentinel.ts'
import { splunkReceiver } from './splunk-hec.ts'
import { syslogReceiver } from './syslog.ts'

/** Credentials of `cloudCredentials` (docs/spec/gateway.md). Rejects without them. */
export interface Clouds {
  aws(): Promise<AwsCredentials>
  /** A token for Azure Monitor. */
  azure(): Promise<string>
  gcp(): Promise<string>
}

export interface ReceiverParts {
  readonly dialer: Pick<Dialer, 'connect' | 'fetchBytes'>
  readonly clock: Clock
  readonly clouds: Clouds
}

export function createReceiver(config: SinkConfig, { dialer, clock, clouds }: ReceiverParts): Receiver {
  const material = new Material(config)
  const http = { config, dialer, material }
  const bearerOr =
    (cloud: BearerSource): BearerSource =>
    async () =>
      (await material.token()) ?? (await cloud())
  switch (config.type) {
    case 'syslog':
      return syslogReceiver({ config, dialer, material, clock })
    case 'http':
      return httpReceiver(http)
    case 'jsonl':
      return jsonlReceiver(config)
    case 'sentinel':
      return sentinelReceiver(http, bearerOr(clouds.azure))
    case 'chronicle':
      return chronicleReceiver(http, bearerOr(clouds.gcp))
    case 'cloudwatch': {
      const credentials = () => (config.credentials === undefined ? material.aws() : clouds.aws())
      return cloudWatchReceiver({ ...http, clock, credentials })
    }
    case 'splunk-hec':
      return splunkReceiver(http)
  }
}

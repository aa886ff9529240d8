import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Clouds } from '../clouds.ts'
import type { SinkConfig } from '../config.ts'
import { Material } from '../material.ts'
import { chronicleReceiver } from './chronicle.ts'
import { cloudWatchReceiver } from './cloudwatch.ts'
import { httpReceiver } from './http.ts'
import { jsonlReceiver } from './jsonl.ts'
import type { Receiver } from './receiver.ts'
import { sentinelReceiver } from './sentinel.ts'
import { splunkReceiver } from './splunk-hec.ts'
import { syslogReceiver } from './syslog.ts'

/** A token for the next request. Rejects when there is none. */
export type BearerSource = () => Promise<string>

export interface ReceiverParts {
  readonly dialer: Pick<Dialer, 'connect' | 'fetchBytes'>
  readonly clock: Clock
  readonly clouds: Clouds
}

/** The receiver of a sink. */
export function createReceiver(config: SinkConfig, { dialer, clock, clouds }: ReceiverParts): Receiver {
  const material = new Material(config)
  const http = { config, dialer, material }
  const bearer: BearerSource = async () => (await material.token()) ?? ''
  switch (config.type) {
    case 'syslog':
      return syslogReceiver({ config, dialer, material, clock })
    case 'http':
      return httpReceiver(http)
    case 'jsonl':
      return jsonlReceiver(config)
    case 'sentinel':
      return sentinelReceiver(http, bearer)
    case 'chronicle':
      return chronicleReceiver(http, bearer)
    case 'cloudwatch': {
      const credentials = () => (config.credentials === undefined ? material.aws() : clouds.aws())
      return cloudWatchReceiver({ ...http, clock, credentials })
    }
    case 'splunk-hec':
      return splunkReceiver(http)
  }
}

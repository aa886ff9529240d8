import { resolve } from 'node:path'
import type { BuildInfo, Clock, Ids, PoolObservers } from '@plat/core'
import type { RawRoute } from '@plat/http'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import { createFileStore, type FileStore } from '@plat/resources'
import { createResourceApi } from '@plat/resources/rest'
import type { AdminAuthentication } from '../../admin/index.ts'
import { Server } from './serve.ts'

/** A store with its folder, opened by another part of this process: two stores would overwrite each other. */
export interface HeldResources {
  readonly dir: string
  readonly store: FileStore
}

export interface ResourcesOptions {
  readonly config: { readonly resourceAPI: { readonly enabled: boolean; readonly dir: string } }
  readonly resources?: HeldResources
  /** Authenticates callers of the admin API; null if it is disabled. */
  readonly authenticate: AdminAuthentication | null
  /** Record changes durably before they are made; default: afterwards. */
  readonly recordsFirst?: boolean
  readonly ledgers: Ledgers
  readonly pools?: PoolObservers<'resource_watches'>
  readonly build: BuildInfo
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** The resource API (docs/spec/gateway.md, `resourceAPI`): resources in YAML files, served as Kubernetes serves them. */
export interface ResourcesFeature {
  /** `/api`, `/apis` and `/openapi/v3`, for a shared listener; empty while off. */
  readonly routes: readonly RawRoute[]
  /** Every path, for a dedicated listener; empty while off. */
  readonly standalone: readonly RawRoute[]
  /** Ends watches, which would otherwise stay open. */
  leave(): void
  close(): void
}

/** Has no routes if it is off or the admin API is disabled. */
export function createResources(options: ResourcesOptions): ResourcesFeature {
  const { config, authenticate, build, clock, ids, log } = options
  const { enabled, dir } = config.resourceAPI
  if (!enabled || authenticate === null) return { routes: [], standalone: [], leave() {}, close() {} }
  const held = options.resources?.dir === resolve(dir) ? options.resources.store : null
  const store = held ?? createFileStore({ dir, clock, ids, log })
  const api = createResourceApi({ store, problems: () => store.problems(), version: build.version, clock, ids, log })
  const server = new Server({ ...options, authenticate, api, observer: options.pools?.of('resource_watches') })
  const handle: RawRoute['handle'] = (exchange) => void server.serve(exchange)
  return {
    routes: ['/api', '/openapi/v3'].map((prefix) => ({ prefix, takes: ({ url = '' }) => OURS.test(url), handle })),
    standalone: [{ prefix: '/', handle }],
    leave: () => server.leave(),
    close() {
      server.leave()
      if (held === null) store.close()
    },
  }
}

/** Excludes paths with the same prefix, such as `/openapi/v30`. */
const OURS = /^\/(?:apis?|openapi\/v3)(?:[/?]|$)/

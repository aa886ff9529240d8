import type { Operation } from './operation.ts'

/** Units in which providers charge for images and sound. */
export const MEDIA_UNITS = ['images', 'characters', 'seconds'] as const

export interface MediaUse {
  readonly unit: (typeof MEDIA_UNITS)[number]
  readonly count: number
}

/** Upper bound of the use of a call. */
export interface MediaDemand {
  readonly unit: MediaUse['unit']
  /** Null: nothing in the request bounds it. */
  readonly atMost: number | null
  /** Options of images by which their price is chosen; null: not stated. */
  readonly size: string | null
  readonly quality: string | null
}

/** Prefixes of the scopes of a model route, by operation: a scope for chats permits nothing else. */
const SCOPES: Readonly<Partial<Record<Operation, string>>> = {
  'model.image': 'models.images:',
  'model.audio': 'models.audio:',
  'model.file': 'models.files:',
  'model.batch': 'models.batches:',
}
const CHAT_SCOPE = 'models:'

/** Prefixes of all scopes of model routes. */
export const MODEL_SCOPES: readonly string[] = [CHAT_SCOPE, ...Object.values(SCOPES)]

/** Returns the prefix of the scope that an operation of a model route requires: `models:`, `models.images:`. */
export function modelScopeOf(operation: Operation): string {
  return SCOPES[operation] ?? CHAT_SCOPE
}

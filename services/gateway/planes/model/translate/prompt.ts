import type { JsonObject } from '@plat/core'

/**
 * A chat in a form that is independent of providers, between a request in the caller's API and that of another provider. Adjacent messages of
 * one role are one turn, since some providers require alternating roles.
 */
export interface Prompt {
  readonly system: readonly string[]
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  /** `name`: this tool and no other. */
  readonly choice: 'auto' | 'none' | 'required' | { readonly name: string }
  /** False: at most one tool call in a response. */
  readonly parallel: boolean
  /** Null: the caller set no limit. */
  readonly maxTokens: number | null
  readonly temperature: number | null
  readonly topP: number | null
  readonly topK: number | null
  readonly seed: number | null
  readonly frequencyPenalty: number | null
  readonly presencePenalty: number | null
  readonly stop: readonly string[]
  readonly format: Format
  /** By the words of `reasoning_effort`; null: as the model does by itself. */
  readonly effort: string | null
  /** The end user of the request; null if the caller does not name one. */
  readonly user: string | null
  readonly stream: boolean
  /** Members of the caller's request, for errors. */
  readonly names: PromptNames
}

/** The members of the caller's API for what only some providers support. */
export interface PromptNames {
  readonly format: string
  readonly choice: string
  readonly effort: string
  readonly parallel: string
}

/** Settings that only some providers support. */
export type Option =
  | 'temperature'
  | 'top_p'
  | 'top_k'
  | 'stop'
  | 'seed'
  | 'frequency_penalty'
  | 'presence_penalty'
  | 'parallel_tool_calls'
  | 'reasoning_effort'
  | 'response_format'
  | 'user'

/** Returns the chat of a request for a provider that supports these settings. Throws `UntranslatableError`. */
export type ReadPrompt = (options: readonly Option[]) => Prompt

export interface Turn {
  readonly side: 'user' | 'assistant'
  readonly parts: readonly Part[]
}

/** `at` is the path of the part in the request, for errors. */
export type Part =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'data'
      readonly of: DataKind
      readonly type: string
      readonly data: string
      readonly name: string
      readonly at: string
    }
  | { readonly kind: 'link'; readonly url: string; readonly at: string }
  | {
      readonly kind: 'call'
      readonly id: string
      readonly name: string
      readonly args: JsonObject
      readonly signature: string | null
    }
  /** `failed`: the tool failed. */
  | {
      readonly kind: 'result'
      readonly id: string
      readonly name: string
      readonly text: string
      readonly failed: boolean
    }

/** The content of a part with bytes (base64); its `type` is a media type. */
export type DataKind = 'image' | 'audio' | 'document'

export interface Tool {
  readonly name: string
  readonly description: string | null
  /** JSON Schema of the arguments; null: it takes none. */
  readonly schema: JsonObject | null
  readonly strict: boolean
  /** The whole of a tool that runs at the provider; null: the agent's own. */
  readonly hosted: JsonObject | null
  readonly at: string
}

export type Format =
  | { readonly kind: 'text' }
  | { readonly kind: 'json' }
  | {
      readonly kind: 'schema'
      readonly name: string
      readonly description: string | null
      readonly schema: JsonObject
      readonly strict: boolean | null
    }

/** A part of a request that cannot be translated. Converted to a denial within this folder. */
export class UntranslatableError extends Error {
  /** The member to mend, as in `messages[1].content[0].image_url`. */
  readonly param: string

  constructor(param: string, why: string) {
    super(`${param} ${why}`)
    this.name = 'UntranslatableError'
    this.param = param
  }
}

/** Conversations of the scripted model, in the format of Anthropic's messages. */

/** A part of a message. */
export interface Block {
  readonly type: string
  readonly id?: string
  readonly name?: string
  readonly tool_use_id?: string
  readonly text?: string
  readonly content?: string | readonly Block[]
}

/** A request of Anthropic's messages. */
export interface Chat {
  readonly messages: readonly { readonly content: string | readonly Block[] }[]
  readonly stream?: boolean
  readonly tools?: readonly { readonly name: string }[]
}

/** The next block of the model. */
export type Reply =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: object }

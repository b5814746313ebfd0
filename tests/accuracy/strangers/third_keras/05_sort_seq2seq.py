# Encoder-decoder with GRUs: read a string of digits, write it sorted.
import numpy as np
import keras
from keras import layers, ops

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)

NUM_DIGITS = 8
LEN = 5
START, END = NUM_DIGITS, NUM_DIGITS + 1
TOKENS = NUM_DIGITS + 2
HIDDEN = 64


def make_pairs(n):
    src = rng.integers(0, NUM_DIGITS, (n, LEN))
    tgt = np.sort(src, axis=1)
    start = np.full((n, 1), START)
    end = np.full((n, 1), END)
    return src, np.concatenate([start, tgt, end], axis=1)


src_train, tgt_train = make_pairs(8000)
src_test, tgt_test = make_pairs(300)

decoder_input_data = tgt_train[:, 1:]
decoder_target_data = tgt_train[:, 1:]

# training model
enc_inputs = keras.Input((None,), dtype="int32")
enc_emb = layers.Embedding(TOKENS, 16)(enc_inputs)
_, state = layers.GRU(HIDDEN, return_state=True)(enc_emb)

dec_inputs = keras.Input((None,), dtype="int32")
dec_embedding = layers.Embedding(TOKENS, 16)
dec_gru = layers.GRU(HIDDEN, return_sequences=True, return_state=True)
dec_dense = layers.Dense(TOKENS, activation="softmax")
dec_out, _ = dec_gru(dec_embedding(dec_inputs), initial_state=state)
probs = dec_dense(dec_out)

model = keras.Model([enc_inputs, dec_inputs], probs)
model.compile(optimizer=keras.optimizers.Adam(5e-3),
              loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit([src_train, decoder_input_data], decoder_target_data,
          batch_size=64, epochs=10, validation_split=0.1, verbose=2)

# inference models
encoder_model = keras.Model(enc_inputs, state)
state_in = keras.Input((HIDDEN,))
one_token = keras.Input((1,), dtype="int32")
out, new_state = dec_gru(dec_embedding(one_token), initial_state=state_in)
decoder_model = keras.Model([one_token, state_in], [dec_dense(out), new_state])


def decode(src):
    s = encoder_model(ops.convert_to_tensor(src))
    token = np.full((len(src), 1), START, "int32")
    result = []
    for _ in range(LEN):
        p, s = decoder_model([ops.convert_to_tensor(token), s])
        token = np.argmax(p, axis=-1).astype("int32")
        result.append(token)
    return np.concatenate(result, axis=1)


decoded = decode(src_test)
truth = tgt_test[:, 1:-1]
for i in range(4):
    print(src_test[i], "->", decoded[i], "expected", truth[i])
print("digit accuracy    %.3f" % np.mean(decoded == truth))
print("sequence accuracy %.3f" % np.mean(np.all(decoded == truth, axis=1)))

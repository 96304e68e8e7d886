# amqpsniff with everything it can use: `live` on the host's network, `batch` on its own Spark.
#     docker build -t amqpsniff .
#     docker run --rm --network host --cap-add NET_RAW amqpsniff live -i any
#     docker run --rm -v "$PWD:/data" amqpsniff batch -o /data/tables /data/captures
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
COPY . /source
RUN pip wheel --no-deps -w /wheels /source

FROM python:3.13-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends default-jre-headless procps tcpdump tshark \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[all]" && rm -r /wheels
# Without its compiled modules the program would be slow, and nothing else would say so.
RUN amqpsniff --version -v | grep '^compiled modules: \([0-9]*\) of \1$'
WORKDIR /data
ENTRYPOINT ["amqpsniff"]
